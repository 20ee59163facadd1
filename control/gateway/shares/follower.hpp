// SPDX-License-Identifier: Apache-2.0
// Follows the connections of one other gateway: a thread that calls it by gRPC over mutual TLS, hands the
// messages to a CopyChannel, and calls again after the stream has ended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "control/client/target.hpp"
#include "control/gateway/shares/copy_channel.hpp"
#include "control/tls/material.hpp"
#include "dataplane/base/time.hpp"

namespace grpc {
class ClientContext;
}

namespace penstock::gateway {

class Follower {
 public:
    struct Options {
        std::string own_name;
        client::Target target;  // of the other gateway
        uint64_t plan_version = 0;
        // The certificate, key and CA of now; null: there are none. Any thread.
        std::function<std::shared_ptr<const tls::Material>()> material;
        std::function<CoarseTime()> now;  // of the connections; any thread
        // The pause after a stream that has ended, doubled with each one that has not become complete.
        std::chrono::milliseconds retry_first{200};
        std::chrono::milliseconds retry_max{5'000};
    };
    // `channel` must outlive the follower.
    Follower(Options options, CopyChannel& channel);
    ~Follower();  // ends the stream and the thread
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    // Ends the current stream, so that another one begins. Any thread.
    void restart(const std::string& why);
    // Begins what the destructor completes. Any thread.
    void request_stop();

 private:
    void run(const std::stop_token& stopped);
    // Returns why it has ended.
    std::string follow(const std::stop_token& stopped);
    // Makes `context` the one that restart() cancels; null: none. False: the follower stops.
    bool set_context(grpc::ClientContext* context, const std::stop_token& stopped);

    const Options options_;
    CopyChannel& channel_;
    std::mutex mutex_;
    std::condition_variable_any wakes_;
    grpc::ClientContext* context_ = nullptr;  // guarded by mutex_, like the next one
    std::string restart_reason_;
    std::jthread thread_;  // last: it uses all of the above
};

}  // namespace penstock::gateway
