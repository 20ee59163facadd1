// SPDX-License-Identifier: Apache-2.0
// The return of a gateway to its shares (docs/adr/0050). A gateway that starts has none of the connections
// that the other gateway of a share has. Until it has copies of them, a primary announces the VIPs of the
// share with kDrainMetric, behind its heir, and an heir does not announce them. So a gateway takes over the
// connections together with the VIPs. A primary that is the only one left serves at this level too.
//
//   role      it has returned when
//   primary   all connections of the heir are copied
//   heir      those of the primary are, and the primary has returned to its own shares; or one of the two has
//             not been true for kWaitMax
//
// With FailBack::ByCommand a primary that could return stays behind its heir until fail_back(). A share that
// a new plan gives to this gateway needs no command: the plan is one.
//
// A state machine without clock or thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "control/gateway/shares/gateway_shares.hpp"

namespace penstock::gateway {

class ShareReturn {
 public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::seconds kWaitMax{10};

    // Another gateway, as the channel of copies shows it.
    struct Peer {
        enum class Channel : uint8_t {
            Off,  // there are no copies, so there is nothing to wait for
            Away,
            Copying,
            Complete,
        };
        Channel channel = Channel::Off;
        bool has_returned = false;  // to all shares of which it is the primary
    };
    // AtStart: to all shares of the first plan. Never: this process continues one that served them.
    enum class First : uint8_t { AtStart, Never };
    // When a primary returns after a start: as soon as it can, or by fail_back().
    enum class FailBack : uint8_t { Automatic, ByCommand };
    // `returning`: the shares to which the process that this one continues was returning.
    explicit ShareReturn(First first, uint64_t returning = 0,
                         FailBack fail_back = FailBack::Automatic) noexcept
        : first_(first), mode_(fail_back), returning_(returning) {}

    // `peer_of`: by the name of a gateway. True: returning() has changed. A share in which the gateway had no
    // role by the plan before is one to return to.
    bool update(const GatewayShares& shares, const std::function<Peer(const std::string&)>& peer_of,
                Time now);

    // These shares have been held by another gateway meanwhile (LinkHolder): the next update() returns to
    // them.
    void lose(uint64_t shares) noexcept {
        lost_ |= shares;
        released_ &= ~shares;
    }

    // Bit n: the gateway returns to share n.
    [[nodiscard]] uint64_t returning() const noexcept { return returning_; }
    // Of these, the shares that only wait for fail_back().
    [[nodiscard]] uint64_t held() const noexcept { return held_; }
    // The next update() returns to the shares that are held now.
    void fail_back() noexcept { released_ |= held_; }
    // Whether it has returned to all shares of which it is the primary.
    [[nodiscard]] bool has_returned_as_primary() const noexcept { return has_returned_as_primary_; }

 private:
    [[nodiscard]] bool is_back(shares::Role role, const std::string& other, const Peer& peer, Time now);

    const First first_;
    const FailBack mode_;
    bool has_plan_ = false;
    uint64_t with_role_ = 0;  // by the last plan
    uint64_t returning_ = 0;
    uint64_t held_ = 0;
    uint64_t lost_ = 0;
    uint64_t released_ = 0;  // by a plan or by fail_back(), until they are returned to
    bool has_returned_as_primary_ = false;
    std::map<std::string, Time> waits_since_;  // for copies of a gateway that is away, or for its return
};

}  // namespace penstock::gateway
