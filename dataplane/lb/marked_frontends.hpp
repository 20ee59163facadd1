// Frontends by the number that a rule in the NIC marks their packets with (drivers/flow/flow_rule.hpp, VipMark). A mark is a hint: it saves the
// look-up where it names the very frontend that the packet is for, and where it does not (a rule that is behind the configuration, a driver
// that marks what it should not) the look-up is done as if there were none.
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

// Made for one ServiceTable, whose rows it points to; lives in the same snapshot.
class MarkedFrontends {
 public:
    // `by_mark`: what is marked with 1, 2, ... A tuple that the table lacks is never found.
    MarkedFrontends(const ServiceTable& table, const std::vector<FrontendTuple>& by_mark) {
        rows_.push_back(nullptr);  // 0 is no mark
        for (const FrontendTuple& tuple : by_mark) {
            rows_.push_back(table.find(tuple.address, tuple.port, tuple.protocol));
        }
    }

    // The frontend of this destination if the mark names it, else null: then ask the table.
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
