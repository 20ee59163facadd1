// SPDX-License-Identifier: Apache-2.0
// Detects a dead peer behind a silent connection (APISYNC-015). TCP does not report it: a peer that lost
// power, or a firewall that dropped its flow state, looks like an idle peer. Pure: the time of the last
// receive is an argument.
//
//   HTTP/1.1  one request per connection, so no probe is possible while a watch runs: 60 s of silence end the
//             connection.
//   HTTP/2    after 30 s of silence a small request is sent on the same connection. If no byte of any kind
//             arrives within 15 s, the peer is considered dead.
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
