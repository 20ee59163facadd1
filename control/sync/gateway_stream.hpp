// Keeps one gateway supplied: connects, follows the state stream, and tries again for as long as the gateway is away. A thread of its own
// holds a StateSession and does the evaluating, so that several gateways are served at once; a second thread waits in gRPC's Read.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "control/client/target.hpp"
#include "control/kube/objects.hpp"
#include "control/semantics/semantics.hpp"
#include "control/sync/state_session.hpp"
#include "penstock/v1/config.pb.h"

namespace grpc {
class ClientContext;
}

namespace penstock::sync {

// Between attempts: short enough that a restarted gateway is supplied at once, doubled up to what a gateway that is switched off may cost.
inline constexpr std::chrono::milliseconds kRetryMin{200};
inline constexpr std::chrono::milliseconds kRetryMax{5'000};
// A gateway that has not said who it is by then, or has not applied what it was sent, is reported (and waited for).
inline constexpr std::chrono::milliseconds kAnswerExpected{5'000};

class GatewayStream {
 public:
    // Starts at once. `source` as in StateSession.
    GatewayStream(client::Target target, client::TlsFiles tls, std::string source, semantics::Policy policy);
    // Ends the stream, which changes nothing at the gateway.
    ~GatewayStream();
    GatewayStream(const GatewayStream&) = delete;
    GatewayStream& operator=(const GatewayStream&) = delete;

    // The objects as they are now; any thread, never blocks for long.
    void update(std::shared_ptr<const kube::ObjectSet> objects);

 private:
    using Clock = std::chrono::steady_clock;

    // What the outer world left for the thread.
    struct Inbox {
        std::shared_ptr<const kube::ObjectSet> objects;  // null: no news
        std::deque<v1::GatewayMessage> messages;
        bool stream_ended = false;
        bool stopping = false;
    };

    void run();
    // One stream from opening to end. True where the gateway identified itself; `why` tells how it ended.
    bool converse(std::string& why);
    // True where the stream has ended, false where we want to end it.
    template <typename Stream>
    bool send_and_receive(Stream& stream, std::string& why, bool& identified);
    // Waits for news, for at most kAnswerExpected, and takes it.
    Inbox take_news();
    // True unless stopping: the time has passed.
    bool pause(std::chrono::milliseconds time);
    Status handle(const v1::GatewayMessage& message);
    void write_log();

    const client::Target target_;
    const client::TlsFiles tls_;
    StateSession session_;  // the thread's alone

    std::mutex mutex_;
    std::condition_variable news_;
    Inbox inbox_;                             // guarded by mutex_
    grpc::ClientContext* context_ = nullptr;  // of the open stream; guarded by mutex_

    std::jthread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
