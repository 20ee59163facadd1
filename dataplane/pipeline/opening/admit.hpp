// SPDX-License-Identifier: Apache-2.0
// Decides whether a packet may open a flow, and with which backends. Pure: new_flow acts on the result,
// explain reports it.
#pragma once

#include <cstdint>

#include "dataplane/base/verdict.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::pipeline {

// Packets that the gateway host sends to a frontend get the backend set of clients inside the cluster
// (ETP-006) and are answered through the twin. A packet from outside with the host's address as its source is
// spoofed.
enum class Sender : uint8_t { Outside, Host };

struct Admission {
    enum class Kind : uint8_t {
        Open,    // choose a backend from `set`
        Punt,    // not addressed to a Service: Linux decides, or has decided
        Reject,  // answer with RST or ICMP unreachable
        Drop,    // drop it for `reason`
        // treat it as mid-stream of a connection that another gateway opened; choose a backend from `set`
        PickUp,
    };
    Kind kind = Kind::Punt;
    DropReason reason{};                        // if kind is Drop
    const lb::FrontendRow* frontend = nullptr;  // null for Punt, and for a closed port of a VIP
    // The backends that this client may get. Null also if a mid-stream segment is rejected.
    const lb::BackendSet* set = nullptr;
};

// The order of the checks matters and follows the requirements: source ranges before policy and reject
// (SRC-001), no flow for a segment that cannot open one (REJ-005), the Local rules before the general rule
// for empty sets (ETP-003). Spoofed sources are checked before any rule that would send an answer to them.
// `arrival`: the NicPort on which the packet arrived.
[[nodiscard]] Admission admit(const config::Snapshot& snapshot, const lb::FrontendRow* frontend,
                              const packet::Parsed& parsed, NicPortId arrival,
                              Sender sender = Sender::Outside) noexcept;

}  // namespace penstock::pipeline
