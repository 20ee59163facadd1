// SPDX-License-Identifier: Apache-2.0
// The sessions that a routing daemon has requested, as the gateway can run them: each on the NicPort of its
// interface, or without one. Pure: requests and changes in, orders for the workers out.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/bfd/frr_messages.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/bfd/engine.hpp"

namespace penstock::bfd {

// A twin, as sessions name it, with its addresses now.
struct Twin {
    std::string name;
    NicPortId port;
    struct Subnet {
        IpAddr address;
        uint8_t prefix_length = 0;
    };
    std::vector<Subnet> subnets;
};

// For views.
struct SessionView {
    uint32_t discriminator = 0;
    std::string twin;  // "": multihop
    IpAddr local;
    IpAddr peer;
    uint32_t min_tx_us = 0;
    uint32_t min_rx_us = 0;
    uint8_t detect_multiplier = 0;
    Status status;
    std::string refusal;                                 // why the workers do not run it; "": they do
    uint64_t times_down = 0;                             // changes from Up to another state
    std::chrono::steady_clock::time_point changed_at{};  // of the state
};

class SessionBook {
 public:
    using Clock = std::chrono::steady_clock;

    // The orders that the request needs; none if it is refused (view().refusal) or unknown.
    std::vector<Order> request(const SessionRequest& request, const std::vector<Twin>& twins,
                               Clock::time_point now);
    // A worker's report. False: of no session.
    bool change(const Change& change, Clock::time_point now);
    // The routing daemon is gone. Its sessions continue until it has returned and requested them again, or
    // until end_orphans().
    void orphan_all();
    // Ends the sessions that no daemon has requested since orphan_all().
    std::vector<Order> end_orphans();

    // Sessions of a former process, which the routing daemon does not request again.
    struct Kept {
        Terms terms;
        Status status;
        std::string twin;
    };
    [[nodiscard]] std::vector<Kept> kept() const;
    std::vector<Order> resume(const std::vector<Kept>& former, Clock::time_point now);

    [[nodiscard]] std::optional<SessionView> session(uint32_t discriminator) const;
    // Sorted by discriminator.
    [[nodiscard]] std::vector<SessionView> sessions() const;

 private:
    struct Entry {
        SessionView view;
        Terms terms;
        bool is_orphaned = false;
    };
    [[nodiscard]] size_t running() const;
    std::vector<Order> remove(uint32_t discriminator);

    std::map<uint32_t, Entry> entries_;
};

}  // namespace penstock::bfd
