// The blocklist (--blocklist): any IP packet that arrives from a listed source ends here, whatever it is addressed to. What Linux sends
// through a twin does not arrive. A NIC that has a rule for it (drivers/flow/flow_rule.hpp, SourceDrop) drops the same packets earlier.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/route/prefix_set.hpp"

namespace penstock::pipeline {

// Behind classify, only where there is a list.
PENSTOCK_NOINLINE void drop_blocked(const route::PrefixSet& blocked, Burst& burst) noexcept;

}  // namespace penstock::pipeline
