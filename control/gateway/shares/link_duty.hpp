// SPDX-License-Identifier: Apache-2.0
// The thread that decides which shares this gateway holds on links without routers (docs/adr/0052): gathers
// what LinkHolder decides by, probes the links, and passes each change on to the caretaker.
//
//   caretaker -- LinkShares --> LinkDuty -- HeldShares --> caretaker --> workers
//   reports of other gateways, BFD --^ \--> own report, sent with copies of connections
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/care/link_shares.hpp"
#include "control/gateway/shares/link_holder.hpp"
#include "control/gateway/shares/probe_rounds.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::gateway {

class LinkDuty {
 public:
    static constexpr std::chrono::milliseconds kRound{25};

    // Called on the thread of this object.
    struct Options {
        std::function<LinkHolder::Peer(const std::string& gateway)> peer_of;
        std::function<uint64_t()> returning;        // ShareReturn::returning()
        std::function<void(uint64_t shares)> lose;  // ShareCopies::lose()
        std::function<void(HeldShares)> on_held;    // after each change
        // False: the probe has not been sent.
        std::function<bool(const route::LinkVip&)> probe;
        // Passes on each claim to an address of a link, by the Ethernet address of the host, that has
        // arrived.
        std::function<void(const std::function<void(NicPortId, const IpAddr&, const MacAddr&)>& take)>
            receive;
        std::vector<MacAddr> macs = {};  // of the ports
        uint64_t former_held = 0;        // of the process that this one continues, by the plan former_plan
        uint64_t former_plan = 0;        // its version
    };
    explicit LinkDuty(Options options);
    ~LinkDuty();  // ends the thread
    LinkDuty(const LinkDuty&) = delete;
    LinkDuty& operator=(const LinkDuty&) = delete;

    void start();  // once
    void stop();   // idempotent; none of the options is called afterwards

    // The facts of the caretaker from now on. Any thread.
    void set(LinkShares facts);
    // For the other gateways. Any thread.
    [[nodiscard]] HolderReport report() const;
    // Of the last round. Any thread.
    [[nodiscard]] uint64_t held() const;
    [[nodiscard]] uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

    // One round of the thread. For tests.
    void work(LinkHolder::Time now);

 private:
    void run(const std::stop_token& stopped);
    void receive_claims(const GatewayShares& shares, const std::map<std::string, LinkHolder::Peer>& peers,
                        LinkHolder::Time now);
    void log_changes(const GatewayShares& shares, uint64_t before, uint64_t now) const;
    void log_claims(uint64_t claimed);

    const Options options_;
    std::atomic<uint64_t> rounds_{0};
    mutable std::mutex mutex_;
    LinkShares facts_;     // guarded by mutex_
    HolderReport report_;  // likewise

    // Used by one thread only.
    LinkHolder holder_;
    ProbeRounds probes_;
    HeldShares held_;
    bool has_begun_ = false;
    uint64_t claimed_ = 0;  // shares of which another host's claim has been logged
    std::jthread thread_;   // last: it uses all of the above
};

}  // namespace penstock::gateway
