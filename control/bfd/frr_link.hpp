// SPDX-License-Identifier: Apache-2.0
// The connection to FRR's bfdd, and its thread: takes the sessions that bfdd requests to the workers, and
// their states to bfdd. The thread also decides when the workers must be silent: while a loop that traffic
// needs has stalled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/bfd/frr_messages.hpp"
#include "control/bfd/session_book.hpp"
#include "dataplane/bfd/engine.hpp"

namespace penstock::bfd {

class FrrLink {
 public:
    static constexpr std::chrono::milliseconds kRound{10};
    static constexpr std::chrono::seconds kRetry{1};
    // How long sessions continue without bfdd: it restarts meanwhile, and requests them again.
    static constexpr std::chrono::seconds kOrphansFor{15};

    // What a process hands over to its successor.
    struct Handed {
        Descriptor socket;  // not open: there is no connection
        uint8_t version = 1;
        std::vector<SessionBook::Kept> sessions;
    };
    struct Options {
        std::string path;  // of bfdd's Unix socket
        Engine* engine = nullptr;
        // On the thread of the link.
        std::function<std::vector<Twin>()> twins;
        std::function<bool()> forwards;  // false: the workers send nothing
        std::optional<Handed> former;
    };
    // What `options` refers to must outlive it.
    explicit FrrLink(Options options);
    ~FrrLink();  // ends the thread; the workers keep the sessions
    FrrLink(const FrrLink&) = delete;
    FrrLink& operator=(const FrrLink&) = delete;

    // Ends the thread. For a successor, which continues where it stops.
    [[nodiscard]] Handed hand_over();

    struct Session : SessionView {
        uint64_t received = 0;
        uint64_t sent = 0;
        uint64_t withheld = 0;
        uint64_t unsendable = 0;
    };
    struct View {
        std::string path;
        std::string fault;         // why there is no connection; "": there is one
        bool is_withheld = false;  // the workers send nothing
        std::vector<Session> sessions;
    };
    // Any thread.
    [[nodiscard]] View view() const;
    // Rounds of the thread, for a watch. Any thread.
    [[nodiscard]] uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

 private:
    using Clock = std::chrono::steady_clock;

    void run(const std::stop_token& stopped);
    void round(Clock::time_point now);
    void connect(Clock::time_point now);
    void disconnect(const std::string& why, Clock::time_point now);
    void read(Clock::time_point now);
    void write(Clock::time_point now);
    void handle(const FrrMessage& message, Clock::time_point now);
    void take_changes(Clock::time_point now);
    void give_orders();
    void send(const std::vector<uint8_t>& message);
    void log_change(const SessionView& before, const SessionView& after) const;

    Options options_;
    mutable std::mutex mutex_;  // of the next two
    SessionBook book_;
    std::string fault_;

    Descriptor socket_;
    FrrReader reader_;
    std::vector<uint8_t> unsent_;
    std::vector<Order> orders_;  // that the workers' queue had no room for
    Clock::time_point connect_at_{};
    std::optional<Clock::time_point> orphans_end_at_;
    bool was_connected_ = false;
    std::atomic<uint64_t> rounds_{0};
    std::jthread thread_;  // last: it uses all members above
};

}  // namespace penstock::bfd
