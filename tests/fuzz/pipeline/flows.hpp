// What the gateway's connections say about packets that have passed, and what passed before: the one must explain the other. A connection
// is one life of an entry, and keeps its keys, its backend and so both translations from its first packet to its last.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/packet/flow_key.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::fuzz {

class Flows {
 public:
    Flows(test::VirtualGateway& gateway, uint32_t workers) : gateway_(gateway), workers_(workers) {}

    // Each says what is wrong; null: nothing.
    //
    // A packet came as `came` and has left `worker` as `left`.
    [[nodiscard]] const char* wrong_with_passage(const packet::FlowKey& came, const packet::FlowKey& left,
                                                 WorkerId worker);
    // An ICMP error came about a packet that had left as `left`, and goes on about one that came as `came`.
    [[nodiscard]] const char* wrong_with_quote(const packet::FlowKey& left, const packet::FlowKey& came,
                                               WorkerId worker) const;
    // Whether some worker has a connection that packets like this one belong to.
    [[nodiscard]] bool has(const packet::FlowKey& key) const;

 private:
    // A connection from its first packet here to its last.
    struct Life {
        WorkerId worker;
        ConnectionIndex index;
        uint32_t generation;  // tells it from others at this index, before and after
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
