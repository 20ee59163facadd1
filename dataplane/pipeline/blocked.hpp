// SPDX-License-Identifier: Apache-2.0
// The blocklist (--blocklist): any IP packet that arrives from a listed source is dropped, whatever its
// destination. Frames that Linux sends through a twin are exempt. A NIC that has a rule for it
// (drivers/flow/flow_rule.hpp, SourceDrop) drops the same packets earlier.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/route/prefix_set.hpp"

namespace penstock::pipeline {

// Runs after classify, only if a blocklist is configured.
PENSTOCK_NOINLINE void drop_blocked(const route::PrefixSet& blocked, Burst& burst) noexcept;

}  // namespace penstock::pipeline
