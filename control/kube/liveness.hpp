// Is the peer of a silent connection still there? (APISYNC-015) TCP does not say: a peer that lost its power, or a firewall that forgot the
// flow, looks like one that has nothing to tell. Pure: what was received when comes as an argument.
//
//   HTTP/1.1  one request a connection, so nothing can be asked while a watch runs: silence itself is the sign, after 60 s.
//   HTTP/2    after 30 s of silence a small request goes out on the same connection; if 15 s later still not one byte has come, of
//             whatever kind, the peer is gone.
#pragma once

#include <chrono>
#include <optional>

namespace penstock::kube {

struct LivenessLimits {
    std::chrono::milliseconds silence_max = std::chrono::seconds(60);
    std::chrono::milliseconds probe_after = std::chrono::seconds(30);
    std::chrono::milliseconds probe_answer_max = std::chrono::seconds(15);
};

// One HTTP/2 connection.
class ProbedConnection {
 public:
    using Time = std::chrono::steady_clock::time_point;
    enum class Step : uint8_t { Wait, Probe, GiveUp };

    Step step(Time now, Time last_received, const LivenessLimits& limits) {
        if (probed_at_ && last_received > *probed_at_) {
            probed_at_.reset();
        }
        if (!probed_at_) {
            if (now - last_received < limits.probe_after) {
                return Step::Wait;
            }
            probed_at_ = now;
            return Step::Probe;
        }
        return now - *probed_at_ < limits.probe_answer_max ? Step::Wait : Step::GiveUp;
    }

 private:
    std::optional<Time> probed_at_;
};

}  // namespace penstock::kube
