// SPDX-License-Identifier: Apache-2.0
// Names of schedulers in annotations and options.
#pragma once

#include <string_view>

#include "dataplane/base/result.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

// Parses a name of to_string(SchedulerKind), ignoring case (SCHED-001). InvalidArgument quotes the text and
// lists the names.
Result<SchedulerKind> parse_scheduler(std::string_view text);

}  // namespace penstock::lb
