// SPDX-License-Identifier: Apache-2.0
#include "control/cli/service_name.hpp"

namespace penstock::cli {

Result<ServiceName> service_filter_from(const Request& request) {
    if (request.arguments.empty()) {
        return ServiceName{request.namespace_name, ""};
    }
    const std::string& text = request.arguments[0];
    const size_t slash = text.find('/');
    if (text.empty()) {
        return fail(Errc::InvalidArgument, "service \"\": must be NAME or NAMESPACE/NAME");
    }
    if (slash == std::string::npos) {
        return ServiceName{request.namespace_name, text};
    }
    if (slash == 0 || slash + 1 == text.size() || text.find('/', slash + 1) != std::string::npos) {
        return fail(Errc::InvalidArgument, "service " + text + ": must be NAME or NAMESPACE/NAME");
    }
    ServiceName name{text.substr(0, slash), text.substr(slash + 1)};
    if (!request.namespace_name.empty() && request.namespace_name != name.namespace_name) {
        return fail(Errc::InvalidArgument,
                    "service " + text + ": contradicts --namespace " + request.namespace_name);
    }
    return name;
}

Result<ServiceName> service_name_from(const Request& request) {
    auto name = service_filter_from(request);
    if (name && name->namespace_name.empty()) {
        name->namespace_name = "default";
    }
    return name;
}

}  // namespace penstock::cli
