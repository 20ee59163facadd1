// SPDX-License-Identifier: Apache-2.0
// The receiving end of one other gateway's copies: decodes the messages of its streams, applies them to the
// book, and keeps the state for display. No gRPC, no thread, no clock: a Follower calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/shares/copy_book.hpp"
#include "control/gateway/shares/link_holder.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "penstock/v1/peers.pb.h"

namespace penstock::gateway {

// The book and its lock, shared by the channels and by what else uses it.
struct SharedBook {
    explicit SharedBook(copies::Store& store) : book(store) {}
    // Calls portion(book) with the lock held until it returns false. A std::mutex is not fair: other threads
    // get the lock in the pauses.
    template <typename Portion>
    void in_portions(Portion&& portion) {
        constexpr std::chrono::microseconds kPause{100};
        for (;; std::this_thread::sleep_for(kPause)) {
            const std::lock_guard lock(mutex);
            if (!portion(book)) {
                return;
            }
        }
    }
    std::mutex mutex;
    CopyBook book;
};

enum class ChannelState : uint8_t {
    Off,          // no copies: --share-copies 0, or one of the gateways has no address in the plan
    Unprotected,  // no copies: there are no --tls-* files
    Connecting,   // no stream; copies of a former one are kept
    Copying,      // the stream has not sent all connections yet
    Full,         // it has, but the store has no room for some of them
    Complete,     // this gateway has a copy of every connection that is older than --share-age
};
// "off", "unprotected", "connecting", "copying", "full", "complete"
[[nodiscard]] const char* to_string(ChannelState state) noexcept;

class CopyChannel {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // A stream without a message for this long is over: there is one each second.
    static constexpr std::chrono::seconds kSilence{10};
    // Ethernet addresses of a report that are kept.
    static constexpr size_t kPortsMax = 64;
    // A gateway that is silent for this long takes no strays (docs/adr/0051).
    static constexpr std::chrono::seconds kStraySilence{3};
    // A store without room for all copies is tried again after this time at the earliest.
    static constexpr std::chrono::seconds kFullPause{60};

    // Whether a worker has a connection with a key of this one.
    using IsInTable = std::function<bool(const conn::Connection&)>;

    // `gateway` is a name of the plan. `clock`: of the book's connections.
    // `on_strays`: called on the follower's thread when takes_strays() may have changed.
    CopyChannel(
        std::string gateway, SharedBook& shared, CoarseClock clock, IsInTable is_in_table,
        std::function<void()> on_strays = [] {})
        : gateway_(std::move(gateway)),
          shared_(shared),
          clock_(clock),
          is_in_table_(std::move(is_in_table)),
          on_strays_(std::move(on_strays)) {}

    // --- One thread ---

    // The other gateway is called.
    void begin_call(Time at);
    // It has answered: its first message follows.
    void begin_stream(Time at);
    // The next message of the stream. An error ends it: nothing of its records has been applied. `now`: that
    // of the book's connections.
    Status take(const v1::ConnectionCopies& message, CoarseTime now, Time at);
    // Replaced: by this gateway, for another one. The other gateway takes strays until it has been silent.
    enum class End : uint8_t { Failed, Replaced };
    // `why` it has ended, or has not begun; for display.
    void end_stream(std::string why, End end = End::Failed);

    // --- Any thread ---

    struct View {
        ChannelState state = ChannelState::Connecting;
        std::string fault;                // of the last stream; "" while a stream is well
        std::optional<Time> complete_at;  // when all connections had been sent for the last time
        uint64_t plan_version = 0;        // in force at the other gateway; 0: unknown
        bool has_returned = false;        // the other gateway, to all shares of which it is the primary
        uint64_t streams = 0;             // begun since the start
        // One of them was complete: this gateway has got back what it had before its process was started
        // anew.
        bool has_recovered = false;
    };
    [[nodiscard]] View view() const;
    // View::has_recovered, without the lock of the book.
    [[nodiscard]] bool has_recovered() const;
    // Whether a new stream is needed: the current one, or the call, is silent, or has lost copies for want of
    // room that is there now.
    [[nodiscard]] bool needs_restart(Time now) const;
    // Whether the other gateway takes strays, by the current stream. Empty: the first call has neither been
    // answered nor failed.
    [[nodiscard]] std::optional<bool> takes_strays(Time now) const;
    // What the other gateway reports about the shares that it holds. LinkHolder::Peer::bfd is not set. It is
    // silent since the epoch if it has never reported. HolderReport::macs are those of the last report also
    // while it is silent.
    [[nodiscard]] LinkHolder::Peer holder(Time now) const;
    [[nodiscard]] const std::string& gateway() const noexcept { return gateway_; }

 private:
    // Under mutex_.
    void note_holder(const v1::ConnectionCopies& message, Time at);
    void note(const v1::ConnectionCopies& message, Time at);

    const std::string gateway_;
    SharedBook& shared_;
    const CoarseClock clock_;
    const IsInTable is_in_table_;
    const std::function<void()> on_strays_;
    mutable std::mutex mutex_;  // of the members below; never held while that of the book is taken
    bool is_called_ = false;
    bool is_open_ = false;
    bool had_pass_ = false;
    bool may_give_back_ = false;          // it was requested, and no other message of the stream has arrived
    std::optional<bool> takes_strays_;    // as the stream reports
    std::optional<HolderReport> holder_;  // likewise; unset when a stream has failed
    Time reported_{};                     // the last message with such a report
    std::vector<MacAddr> macs_;           // by the last report, of any stream
    Time last_message_{};
    Time began_{};  // the stream
    View view_;
};

}  // namespace penstock::gateway
