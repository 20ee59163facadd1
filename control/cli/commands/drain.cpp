#include <algorithm>
#include <chrono>
#include <thread>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"

namespace penstock::cli {
namespace {

std::string open_text(uint64_t connections) {
    return std::to_string(connections) + (connections == 1 ? " connection is" : " connections are") + " open";
}

// Until nobody uses the gateway any more, at most for `limit`; what is left then is not cut: that is for whoever ends penstockd to do.
Result<uint64_t> wait_for_end(Gateway& gateway, uint64_t connections, std::chrono::seconds limit) {
    constexpr std::chrono::milliseconds kEvery{250};
    const auto until = std::chrono::steady_clock::now() + limit;
    while (connections > 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(kEvery);
        const auto status = gateway.status();
        if (!status) {
            return std::unexpected(status.error());
        }
        connections = status->connections();
    }
    return connections;
}

Result<std::string> run_drain(Gateway* gateway, const Request& request) {
    const auto drained = gateway->set_drained(true);
    if (!drained) {
        return std::unexpected(drained.error());
    }
    if (!request.timeout_given) {
        return "drained: health checks answer 503; " + open_text(drained->connections()) + "\n";
    }
    const auto left = wait_for_end(*gateway, drained->connections(), std::chrono::seconds(request.timeout_s));
    if (!left) {
        return std::unexpected(left.error());
    }
    if (*left > 0) {
        return fail(Errc::Exhausted,
                    "drained, but after " + std::to_string(request.timeout_s) + " s " + open_text(*left) + " still; nothing cuts them");
    }
    return std::string("drained: health checks answer 503, and no connection is left\n");
}

Result<std::string> run_undrain(Gateway* gateway, const Request&) {
    const auto drained = gateway->set_drained(false);
    if (!drained) {
        return std::unexpected(drained.error());
    }
    return "in service: health checks answer as they find; " + open_text(drained->connections()) + "\n";
}

}  // namespace

Command drain() {
    return {.words = {"drain"},
            .summary =
                "takes the gateway out of service: its health checks answer 503, and everything is forwarded as before, until undrain "
                "or a restart. With --timeout it waits so long for the last connection to end",
            .run = run_drain};
}

Command undrain() {
    return {.words = {"undrain"}, .summary = "the end of drain", .run = run_undrain};
}

}  // namespace penstock::cli
