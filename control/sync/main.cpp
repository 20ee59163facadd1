// penstock-sync: folder -> objects -> one stream for each gateway. main() reads as the list of steps.
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
#include "control/manifest/folder.hpp"
#include "control/manifest/watch.hpp"
#include "control/sync/gateway_stream.hpp"
#include "control/sync/once.hpp"
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

void report(Once<manifest::Problem>& known, const std::vector<manifest::Problem>& problems) {
    const auto news = known.update({problems.begin(), problems.end()});
    for (const manifest::Problem& problem : news.appeared) {
        log::get("kube").warn("{}", problem.to_string());
    }
    for (const manifest::Problem& problem : news.gone) {
        log::get("kube").info("no longer: {}", problem.to_string());
    }
}

// Returns when `stop_descriptor` is readable.
void follow(manifest::Folder& folder, manifest::Watch& watch, int stop_descriptor, std::vector<std::unique_ptr<GatewayStream>>& gateways) {
    Once<manifest::Problem> problems;
    std::shared_ptr<const kube::ObjectSet> current;
    do {
        const auto& contents = folder.load(watch.unfinished());
        report(problems, contents.problems);
        if (contents.objects == current) {
            continue;
        }
        current = contents.objects;
        log::get("kube").info("manifests: {} Services, {} EndpointSlices, {} Nodes", current->services.size(), current->slices.size(),
                              current->nodes.size());
        for (const auto& gateway : gateways) {
            gateway->update(current);
        }
    } while (watch.wait(stop_descriptor) == manifest::Watch::Wake::MayHaveChanged);
}

int run(const Options& options) {
    const auto stop_descriptor = end_signals();
    auto watch = manifest::Watch::open(options.manifests);
    if (!stop_descriptor || !watch) {
        log::get("sync").error("{}", stop_descriptor ? watch.error().what : stop_descriptor.error().what);
        return EXIT_FAILURE;
    }
    const std::string source = new_source();
    log::get("sync").info("penstock-sync {} follows {} as {}", PENSTOCK_VERSION, options.manifests.string(), source);
    for (const std::string& hint : hints_of(options.policy)) {
        log::get("sync").info("{}", hint);
    }
    std::vector<std::unique_ptr<GatewayStream>> gateways;
    for (const client::Target& target : options.gateways) {
        gateways.push_back(std::make_unique<GatewayStream>(target, options.tls, source, options.policy));
    }
    manifest::Folder folder(options.manifests);
    follow(folder, *watch, *stop_descriptor, gateways);
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
