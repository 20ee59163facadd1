// SPDX-License-Identifier: Apache-2.0
// Compares the gateway's connections with the packets that have passed: each must be consistent with the
// other. A connection is one lifetime of an entry. Its keys, its backend and thus both translations stay the
// same from its first packet to its last.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/packet/flow_key.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::fuzz {

class Flows {
 public:
    Flows(test::VirtualGateway& gateway, uint32_t workers) : gateway_(gateway), workers_(workers) {}

    // Each function returns a complaint, or null if there is none.
    //
    // A packet that arrived as `came` has left `worker` as `left`.
    [[nodiscard]] const char* wrong_with_passage(const packet::FlowKey& came, const packet::FlowKey& left,
                                                 WorkerId worker);
    // An ICMP error about a packet that had left as `left` was forwarded as an error about one that arrived
    // as `came`.
    [[nodiscard]] const char* wrong_with_quote(const packet::FlowKey& left, const packet::FlowKey& came,
                                               WorkerId worker) const;
    // Whether a worker has a connection for packets with this key.
    [[nodiscard]] bool has(const packet::FlowKey& key) const;

 private:
    // A connection, from its first packet here to its last.
    struct Life {
        WorkerId worker;
        ConnectionIndex index;
        uint32_t generation;  // distinguishes it from earlier and later ones at this index
        BackendId backend;
        packet::FlowKey forward, reverse;
    };
    [[nodiscard]] conn::Found find(const packet::FlowKey& key, WorkerId worker) const;
    [[nodiscard]] bool is_over(const Life& life) const;

    test::VirtualGateway& gateway_;
    uint32_t workers_;
    std::vector<Life> lives_;
};

}  // namespace penstock::fuzz
