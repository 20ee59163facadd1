// Which worker a packet's connection lives on. Pure: the same answer on every worker, from the packet and the snapshot alone, so that both
// directions of a flow meet on one owner whatever queues they arrive on (architecture page, "Replies come home").
//
// Usually there is one candidate. A frontend whose traffic policy was switched while flows lived has two: flows from before were placed by
// the old rule, new ones are by the new one. Then the packet visits the old rule's owner first; only the last candidate may open a flow.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::pipeline {

struct Candidates {
    std::array<WorkerId, 3> workers{};
    uint8_t count = 0;
    void add(WorkerId worker) noexcept {
        if (count == 0 || workers[count - 1] != worker) {  // two rules may agree
            workers[count++] = worker;
        }
    }
    // The configuration may change while a packet is on its way, so a position that another worker counted need not be there any more.
    [[nodiscard]] uint8_t in_range(uint8_t tried) const noexcept { return tried < count ? tried : static_cast<uint8_t>(count - 1); }
    [[nodiscard]] bool is_last(uint8_t tried) const noexcept { return tried + 1 >= count; }
};

// `receiver`: the worker whose receive queue the packet came from. `flow_stays_on_queue`: what the arrival port promises; then the
// receiver of a full-NAT flow's first packet receives them all, and owns it.
[[nodiscard]] Candidates place(const packet::FlowKey& key, const config::Snapshot& snapshot, const nat::ReplyOwner& owner,
                               WorkerId receiver, bool flow_stays_on_queue) noexcept;

// The same for a packet that Linux has sent through a twin; `receiver` serves that twin. The queue says nothing then: Linux may change the
// twin in the middle of a flow. An endpoint on the host answers to the client itself, and to a port that tells the owner where the client's
// address does not (new_flow.cpp); so both are asked, if any endpoint has the source's port.
[[nodiscard]] Candidates place_from_host(const packet::FlowKey& key, const config::Snapshot& snapshot, const nat::ReplyOwner& owner,
                                         WorkerId receiver) noexcept;

// What decided, for explain: "frontend, by the keyed hash of the 5-tuple", ...
[[nodiscard]] const char* placement_rule(const packet::FlowKey& key, const config::Snapshot& snapshot, bool flow_stays_on_queue) noexcept;

}  // namespace penstock::pipeline
