// SPDX-License-Identifier: Apache-2.0
// Texts of `explain` about the rule by which a packet's owner worker is computed (pipeline/placement.hpp).
#pragma once

#include <string>

#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/placement.hpp"

namespace penstock::worker {

// The rule that decided: "the keyed hash of the 5-tuple", "RSS of NicPort 1: hash 0x51ccc178, entry 120 ->
// worker 0", ...
[[nodiscard]] std::string placement_text(const packet::FlowKey& key, const config::Snapshot& snapshot,
                                         const nat::ReplyOwner& owner, const pipeline::Arrived& arrived);

}  // namespace penstock::worker
