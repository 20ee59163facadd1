// The Service that a command's first argument names: "web" or "shop/web", on every command that takes one.
#pragma once

#include <string>

#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct ServiceName {
    std::string namespace_name, name;
};

// For lists: the argument, if any, with the namespace that it names, else that of --namespace. "" is any. InvalidArgument where the
// argument is malformed or contradicts --namespace.
[[nodiscard]] Result<ServiceName> service_filter_from(const Request& request);

// For commands about one Service: the same, and "default" where no namespace is named. Only where there is an argument.
[[nodiscard]] Result<ServiceName> service_name_from(const Request& request);

}  // namespace penstock::cli
