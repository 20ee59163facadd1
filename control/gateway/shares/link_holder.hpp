// SPDX-License-Identifier: Apache-2.0
// The holder of a share: the workers of this gateway answer ARP and ND for the addresses of the share
// (docs/adr/0052). A link has no metric, so of the two gateways of a share only one may answer.
//
// While the reports of the other gateway arrive, they decide: the first of these holds the share, as soon as
// the other one does not.
//   the primary, if it is ready    the heir, if it is ready    the primary, if it is able    the heir
// Without reports, a share stays where it is. A gateway that does not hold it begins to when no host of the
// link answers for it and the other gateway is gone: its BFD session has ended, or a time is over.
//
// A state machine without clock or thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "control/gateway/shares/gateway_shares.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::gateway {

// What gateways report to each other with their copies of connections. Bit n: share n of the plan.
struct HolderReport {
    uint64_t plan_version = 0;  // of the bits
    uint64_t able = 0;          // the gateway could answer
    uint64_t ready = 0;  // each address has a link that is up, and the gateway has returned (ShareReturn)
    uint64_t held = 0;   // it holds the share, or its workers still answer
    // It has held the share as the heir without reports of the primary, which has not begun to return since.
    uint64_t served = 0;
    std::vector<MacAddr> macs = {};  // of its ports
    bool operator==(const HolderReport&) const = default;
};

class LinkHolder {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Of a stream with a message each 100 ms.
    static constexpr std::chrono::milliseconds kSilence{500};
    // How long no host answers until the heir holds a share without reports, without a BFD session, and with
    // one that is up. A restart or an upgrade may take as long.
    static constexpr std::chrono::seconds kPatience{3};
    static constexpr std::chrono::seconds kPatienceWithBfd{10};
    // Of a primary without the heir's connections: the heir has them, and is to hold the share.
    static constexpr std::chrono::seconds kPatienceAfterStart{5};
    // Both hold the share: the primary ends as it receives the heir's report. If it does not, the heir does.
    static constexpr std::chrono::seconds kConflictMax{2};

    struct Peer {
        enum class Bfd : uint8_t { None, Up, Down };
        bool is_reporting = false;  // by the same plan
        Time silent_since{};        // if it is not: since when
        Bfd bfd = Bfd::None;        // the session with its address on the link; Down: it has been up
        HolderReport report;        // by the last message
    };
    struct Inputs {
        uint64_t able = 0;        // HolderReport::able
        uint64_t whole = 0;       // each address of the share has a link that is up
        uint64_t returning = 0;   // ShareReturn::returning()
        uint64_t on_link = 0;     // the share has an address on a link that is up
        uint64_t answered = 0;    // the other gateway answers for the share on a link
        uint64_t unanswered = 0;  // it is on a link, and probes on all of them have had no answer
        std::array<Time, shares::kSharesMax> unanswered_since{};  // since when
    };

    // `peer_of`: by the name of a gateway. Returns the shares to which the gateway must return before it is
    // ready, because the other one has held them without its knowledge.
    [[nodiscard]] uint64_t update(const GatewayShares& shares,
                                  const std::function<Peer(const std::string&)>& peer_of,
                                  const Inputs& inputs, Time now);

    // The workers are to answer for the addresses of these shares.
    [[nodiscard]] uint64_t held() const noexcept { return held_; }
    [[nodiscard]] uint64_t ready() const noexcept { return ready_; }
    [[nodiscard]] uint64_t served() const noexcept { return served_; }
    // The addresses of these shares must be probed, so that the next update() can decide.
    [[nodiscard]] uint64_t to_probe() const noexcept { return to_probe_; }
    // Only these shares are the same by a new plan.
    void keep(uint64_t shares) noexcept {
        held_ &= shares;
        current_ &= shares;
        served_ &= shares;
    }
    // Of a process that this one continues.
    void resume(uint64_t held) noexcept { held_ = current_ = held; }

 private:
    struct Share;
    [[nodiscard]] bool is_lost(const Share& share) const;
    [[nodiscard]] bool holds_by_report(const Share& share);
    [[nodiscard]] bool holds_without_report(const Share& share);

    uint64_t held_ = 0, ready_ = 0, to_probe_ = 0, served_ = 0;
    // Shares of which this gateway as the primary has what the heir has done, or returns to get it.
    uint64_t current_ = 0;
    std::array<Time, shares::kSharesMax> conflict_since_{};  // the epoch: there is none
};

}  // namespace penstock::gateway
