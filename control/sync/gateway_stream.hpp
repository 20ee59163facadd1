// Keeps one gateway supplied: connects, follows the state stream, and tries again for as long as the gateway is away. A thread of its own
// holds a StateSession and does the evaluating, so that several gateways are served at once and a slow one delays nobody. gRPC calls back
// for what was read and written; the thread never waits inside it.
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
#include "control/sync/state_session.hpp"
#include "control/sync/status.hpp"
#include "control/tls/watch.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::sync {

// Between attempts: short enough that a restarted gateway is supplied at once, doubled up to what a gateway that is switched off may cost.
inline constexpr std::chrono::milliseconds kRetryMin{200};
inline constexpr std::chrono::milliseconds kRetryMax{5'000};
// A gateway that has not said who it is by then, or has not applied what it was sent, is reported (and waited for).
inline constexpr std::chrono::milliseconds kAnswerExpected{5'000};

class GatewayStream {
 public:
    using Clock = std::chrono::steady_clock;

    // Starts at once. `tls` outlives the stream; null where the target is a Unix socket. `observer` as in StateSession. `priority`: of this
    // control plane among those that supply the gateway.
    GatewayStream(client::Target target, const tls::Watch* tls, StateSession::Settings settings,
                  Observer* observer = nullptr, uint32_t priority = 0);
    // Ends the stream, which changes nothing at the gateway. Within milliseconds, unless a state is just being worked out.
    ~GatewayStream();
    GatewayStream(const GatewayStream&) = delete;
    GatewayStream& operator=(const GatewayStream&) = delete;

    // As StateSession::on_changes. Any thread, never blocks for long; what a busy thread has not taken yet merges.
    void update(kube::Changes changes);
    // As StateSession::on_external_ip_rules. Any thread; the newest ones count.
    void update(std::vector<semantics::ExternalIpRule> rules);
    // Any thread.
    [[nodiscard]] GatewayStatus status() const;

 private:
    class Call;

    // What the outer world left for the thread.
    struct Inbox {
        std::optional<kube::Changes> changes;
        Clock::time_point heard{};  // the first of the changes
        std::optional<std::vector<semantics::ExternalIpRule>> rules;
        std::optional<v1::GatewayMessage> message;
        bool written = false;  // the message that was being written
        bool stream_ended = false;
        bool stopping = false;
        [[nodiscard]] bool has_news() const {
            return changes || rules || message || written || stream_ended || stopping;
        }
    };

    void run();
    // One stream from opening to end. True where the gateway identified itself; `why` tells how it ended.
    bool converse(std::string& why);
    // True where the stream has ended, false where we want to end it.
    bool send_and_receive(Call& call, std::string& why, bool& identified);
    // Waits for news, until `due` at the latest, and takes them.
    Inbox take_news(Clock::time_point due);
    // Waits, and works in what is heard meanwhile. False where the program ends.
    bool pause(std::chrono::milliseconds time);
    bool is_stopping();
    // Hands the session what it needs no stream for.
    void note_changes(Inbox& news);
    Status handle(const v1::GatewayMessage& message);
    // Log and status, after each round.
    void tell(const std::string* last_error = nullptr);

    const client::Target target_;
    const tls::Watch* const tls_;
    const std::string source_;
    const uint32_t priority_;
    std::string leader_;    // the other control plane that leads, "" while none is known; the thread's alone
    StateSession session_;  // the thread's alone
    FloodGuard flood_guard_;  // likewise

    std::mutex mutex_;
    std::condition_variable news_;
    Inbox inbox_;  // guarded by mutex_

    mutable std::mutex status_mutex_;
    GatewayStatus status_;           // guarded by status_mutex_; its ages are those of status_at_
    Clock::time_point status_at_{};  // likewise

    std::jthread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
