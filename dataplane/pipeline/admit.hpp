// May this packet open a flow, and with which backends? Pure: new_flow acts on the answer, explain tells it.
#pragma once

#include <cstdint>

#include "dataplane/base/verdict.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::pipeline {

// What the gateway host sends to a frontend gets the set of clients inside the cluster (ETP-006), and is answered through the twin; its
// address as a source from outside is forged.
enum class Sender : uint8_t { Outside, Host };

struct Admission {
    enum class Kind : uint8_t {
        Open,    // choose a backend from `set`
        Punt,    // not a Service's packet: Linux decides, or has decided
        Reject,  // answer with RST or ICMP unreachable
        Drop,    // for `reason`
        PickUp,  // take it for the middle of a connection that another gateway has opened; choose a backend from `set`
    };
    Kind kind = Kind::Punt;
    DropReason reason{};                        // where kind is Drop
    const lb::FrontendRow* frontend = nullptr;  // null for Punt, and where a VIP's port is closed
    const lb::BackendSet* set =
        nullptr;  // that this client may choose from; null too where a segment in mid-stream is rejected
};

// Order matters and is the requirement sheet's: source ranges before policy and reject (SRC-001), no flow for a segment that cannot open
// one (REJ-005), the Local rules before the plain empty one (ETP-003). Spoofed sources come before whatever would answer them.
// `arrival`: the NicPort that the packet arrived by.
[[nodiscard]] Admission admit(const config::Snapshot& snapshot, const lb::FrontendRow* frontend,
                              const packet::Parsed& parsed, NicPortId arrival,
                              Sender sender = Sender::Outside) noexcept;

}  // namespace penstock::pipeline
