// SPDX-License-Identifier: Apache-2.0
// For explain: the share of a packet that matches no connection, and where it goes as a stray
// (pipeline/opening/strays.hpp).
#pragma once

#include <optional>
#include <string>

#include "dataplane/base/ip.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::worker {

struct ShareFinding {
    std::string text;
    bool precedes_copies = false;
    std::optional<IpAddr> stray_to;  // the link address of another gateway; empty: the packet is served here
};
// Empty: strays are not forwarded, or the packet belongs to no share.
[[nodiscard]] std::optional<ShareFinding> share_finding(const config::Snapshot& snapshot,
                                                        const packet::FlowKey& key, NicPortId arrival);

}  // namespace penstock::worker
