// SPDX-License-Identifier: Apache-2.0
// Supplies one gateway: connects, runs the state stream, and reconnects for as long as the gateway is
// unreachable. Each GatewayStream has its own thread, which holds a StateSession and evaluates the desired
// state, so that several gateways are served in parallel and a slow one does not delay the others. gRPC
// reports reads and writes by callbacks; the thread never blocks inside gRPC.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/client/target.hpp"
#include "control/kube/changes.hpp"
#include "control/sync/flood_guard.hpp"
#include "control/sync/reachability.hpp"
#include "control/sync/status.hpp"
#include "control/sync/stream/state_session.hpp"
#include "control/tls/watch.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::sync {

// Delay between connection attempts: short enough to supply a restarted gateway at once. It doubles up to
// kRetryMax, which bounds the cost of a gateway that is switched off.
inline constexpr std::chrono::milliseconds kRetryMin{200};
inline constexpr std::chrono::milliseconds kRetryMax{5'000};
// A gateway that has not identified itself within this time, or has not applied the state sent to it, is
// reported in the log. The stream stays open.
inline constexpr std::chrono::milliseconds kAnswerExpected{5'000};

class GatewayStream {
 public:
    using Clock = std::chrono::steady_clock;

    // Starts at once. `tls` must outlive the stream; null if the target is a Unix socket. `observer` as in
    // StateSession. `priority`: of this control plane among those that supply the gateway.
    GatewayStream(client::Target target, const tls::Watch* tls, StateSession::Settings settings,
                  Observer* observer = nullptr, uint32_t priority = 0);
    // Ends the stream, which changes nothing at the gateway. Takes milliseconds, or until a running
    // evaluation is done.
    ~GatewayStream();
    GatewayStream(const GatewayStream&) = delete;
    GatewayStream& operator=(const GatewayStream&) = delete;

    // As StateSession::on_changes. Any thread; never blocks for long. Changes not yet taken by a busy thread
    // are merged.
    void update(kube::Changes changes);
    // As StateSession::on_external_ip_rules. Any thread. The newest rules replace pending ones.
    void update(std::vector<semantics::ExternalIpRule> rules);
    // Any thread.
    [[nodiscard]] GatewayStatus status() const;

 private:
    class Call;

    // Input from other threads for the stream's thread.
    struct Inbox {
        std::optional<kube::Changes> changes;
        Clock::time_point heard{};  // arrival of the first of the changes
        std::optional<std::vector<semantics::ExternalIpRule>> rules;
        std::optional<v1::GatewayMessage> message;
        bool written = false;  // the pending write has finished
        bool stream_ended = false;
        bool stopping = false;
        [[nodiscard]] bool has_news() const {
            return changes || rules || message || written || stream_ended || stopping;
        }
    };

    void run();
    // Runs one stream from opening to end. True if the gateway identified itself; `why` receives the reason
    // of the end.
    bool converse(std::string& why);
    // True if the stream has ended; false if this side is to end it.
    bool send_and_receive(Call& call, std::string& why, bool& identified);
    // Waits for input, until `due` at the latest, and takes it.
    Inbox take_news(Clock::time_point due);
    // Waits for `time` and processes input that arrives meanwhile. False if the program is stopping.
    bool pause(std::chrono::milliseconds time);
    bool is_stopping();
    // Passes on the input that the session can process without a stream.
    void note_changes(Inbox& news);
    Status handle(const v1::GatewayMessage& message);
    // Writes log lines and status, after each round.
    void report(const std::string* last_error = nullptr);

    const client::Target target_;
    const tls::Watch* const tls_;
    const std::string source_;
    const uint32_t priority_;
    Observer* const observer_;
    // Name of the other control plane that leads, "" if none is known; stream thread only.
    std::string leader_;
    StateSession session_;       // stream thread only
    FloodGuard flood_guard_;     // stream thread only
    Reachability reachability_;  // stream thread only

    std::mutex mutex_;
    std::condition_variable news_;
    Inbox inbox_;  // guarded by mutex_

    mutable std::mutex status_mutex_;
    GatewayStatus status_;           // guarded by status_mutex_; its ages refer to status_at_
    Clock::time_point status_at_{};  // guarded by status_mutex_

    std::jthread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
