// SPDX-License-Identifier: Apache-2.0
// Frontends by the mark that a flow rule of the NIC puts on their packets (drivers/flow/flow_rule.hpp,
// VipMark). A mark is a hint that saves the lookup if it names exactly the frontend of the packet. Otherwise
// (a rule older than the configuration, a driver with wrong marks) the lookup is done as without a mark.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/lb/service_table.hpp"

namespace penstock::lb {

struct FrontendTuple {
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    bool operator==(const FrontendTuple&) const = default;
    auto operator<=>(const FrontendTuple&) const = default;
};

// Built for one ServiceTable and points to its rows; part of the same snapshot.
class MarkedFrontends {
 public:
    // `by_mark`: the tuples of marks 1, 2, ... A tuple that is not in the table is never found.
    MarkedFrontends(const ServiceTable& table, const std::vector<FrontendTuple>& by_mark) {
        rows_.push_back(nullptr);  // 0 is no mark
        for (const FrontendTuple& tuple : by_mark) {
            rows_.push_back(table.find(tuple.address, tuple.port, tuple.protocol));
        }
    }

    // The frontend of this destination if the mark names it, otherwise null: then look it up in the table.
    [[nodiscard]] const FrontendRow* find(uint16_t mark, const IpAddr& address, L4Port port,
                                          Protocol protocol) const noexcept {
        const FrontendRow* row = mark < rows_.size() ? rows_[mark] : nullptr;
        return row != nullptr && row->address == address && row->port == port && row->protocol == protocol
                   ? row
                   : nullptr;
    }

 private:
    std::vector<const FrontendRow*> rows_;
};

}  // namespace penstock::lb
