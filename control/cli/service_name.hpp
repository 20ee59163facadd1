// SPDX-License-Identifier: Apache-2.0
// Parses the Service argument of a command: "web" or "shop/web". All commands with such an argument use this.
#pragma once

#include <string>

#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct ServiceName {
    std::string namespace_name, name;
};

// For lists. Returns the argument, if any, with its namespace, otherwise the namespace of --namespace. ""
// means any. InvalidArgument if the argument is malformed or contradicts --namespace.
[[nodiscard]] Result<ServiceName> service_filter_from(const Request& request);

// For commands about one Service. The same, but the namespace defaults to "default". Requires an argument.
[[nodiscard]] Result<ServiceName> service_name_from(const Request& request);

}  // namespace penstock::cli
