// The Service that a command's first argument names.
#pragma once

#include <string>

#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct ServiceName {
    std::string namespace_name, name;
};
// "shop/web", or "web" in --namespace or else in "default". Only where there is an argument.
[[nodiscard]] Result<ServiceName> service_name_from(const Request& request);

}  // namespace penstock::cli
