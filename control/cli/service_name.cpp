#include "control/cli/service_name.hpp"

namespace penstock::cli {

Result<ServiceName> service_name_from(const Request& request) {
    const std::string& text = request.arguments[0];
    const size_t slash = text.find('/');
    if (slash == 0 || slash + 1 == text.size()) {
        return fail(Errc::InvalidArgument, "a service is named as NAMESPACE/NAME, not \"" + text + "\"");
    }
    if (slash != std::string::npos) {
        return ServiceName{text.substr(0, slash), text.substr(slash + 1)};
    }
    return ServiceName{request.namespace_name.empty() ? "default" : request.namespace_name, text};
}

}  // namespace penstock::cli
