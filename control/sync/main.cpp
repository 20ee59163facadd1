// penstock-sync: source -> changes -> one stream for each gateway. main() reads as the list of steps.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include "control/log/log.hpp"
#include "control/sync/gateway_stream.hpp"
#include "control/sync/manifest_source.hpp"
#include "control/sync/options.hpp"

namespace penstock::sync {
namespace {

constexpr int kExitUsage = 2;

// A descriptor that becomes readable when the program shall end. Before any thread starts: they inherit the mask.
Result<int> end_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigaddset(&signals, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    const int descriptor = ::signalfd(-1, &signals, SFD_CLOEXEC);
    if (descriptor < 0) {
        return fail(Errc::Exhausted, std::string("signalfd: ") + std::strerror(errno));
    }
    return descriptor;
}

// Unique to this process, and tells people which one it was: versions are counted within it.
std::string new_source() {
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    std::random_device random;
    return fmt::format("{}-{}-{:08x}", host.data(), ::getpid(), random());
}

// Returns when `stop_descriptor` is readable.
void follow(Source& source, int stop_descriptor, std::vector<std::unique_ptr<GatewayStream>>& gateways) {
    while (source.wait(stop_descriptor)) {
        const auto changes = source.take_changes();
        for (size_t i = 0; changes && i < gateways.size(); ++i) {
            gateways[i]->update(*changes);
        }
    }
}

int run(const Options& options) {
    const auto stop_descriptor = end_signals();
    auto source = ManifestSource::open(options.manifests);
    if (!stop_descriptor || !source) {
        log::get("sync").error("{}", stop_descriptor ? source.error().what : stop_descriptor.error().what);
        return EXIT_FAILURE;
    }
    const std::string identity = new_source();
    log::get("sync").info("penstock-sync {} follows {} as {}", PENSTOCK_VERSION, options.manifests.string(), identity);
    for (const std::string& hint : hints_of(options.policy)) {
        log::get("sync").info("{}", hint);
    }
    std::vector<std::unique_ptr<GatewayStream>> gateways;
    for (const client::Target& target : options.gateways) {
        gateways.push_back(
            std::make_unique<GatewayStream>(target, options.tls, StateSession::Settings{.source = identity, .policy = options.policy}));
    }
    follow(**source, *stop_descriptor, gateways);
    log::get("sync").info("ending; the gateways keep what they have");
    gateways.clear();
    ::close(*stop_descriptor);
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace penstock::sync

int main(int argc, char** argv) {
    using namespace penstock;
    const auto options = sync::read_options({argv + 1, argv + argc});
    if (!options) {
        std::cerr << "penstock-sync: " << options.error().what << "\npenstock-sync: --help lists the options\n";
        return sync::kExitUsage;
    }
    if (const auto* information = std::get_if<sync::Information>(&*options)) {
        std::cout << information->text;
        return EXIT_SUCCESS;
    }
    const auto& read = std::get<sync::Options>(*options);
    log::set_format(read.log_format);
    if (const Status logging = log::set_levels(read.log_levels); !logging) {
        std::cerr << "penstock-sync: " << logging.error().what << "\n";
        return sync::kExitUsage;
    }
    return sync::run(read);
}
