// Names of schedulers as people write them.
#pragma once

#include <string_view>

#include "dataplane/base/result.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

// One of the names that to_string(SchedulerKind) gives, in any case (SCHED-001). InvalidArgument quotes the text and lists the names.
Result<SchedulerKind> parse_scheduler(std::string_view text);

}  // namespace penstock::lb
