// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/listen_address.hpp"

#include <cstddef>
#include <string_view>

#include "dataplane/base/text.hpp"

namespace penstock::gateway {
namespace {

// HOST:PORT, with a port.
bool is_host_port(std::string_view text) {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
        return false;
    }
    const auto port = whole_number<uint16_t>(text.substr(colon + 1));
    const std::string_view host = text.substr(0, colon);
    const bool v6 = host.front() == '[' && host.back() == ']';
    return port.value_or(0) > 0 && (v6 || host.find(':') == std::string_view::npos);
}

}  // namespace

Result<ListenAddress> ListenAddress::parse(const std::string& text) {
    // sun_path holds 108 bytes, with the terminating zero.
    constexpr size_t kPathMax = 107;
    if (text.starts_with("unix:")) {
        std::string path = text.substr(5);
        if (path.starts_with("//")) {
            path.erase(0, 2);  // unix:///run/x is the same path, written as a URI
        }
        if (path.empty() || path.front() != '/' || path.back() == '/') {
            return fail(Errc::InvalidArgument,
                        "\"" + text + "\" is not unix: and the absolute path of a socket");
        }
        if (path.size() > kPathMax) {
            return fail(Errc::InvalidArgument, "\"" + path +
                                                   "\" exceeds the maximum length of a socket path, " +
                                                   std::to_string(kPathMax) + " bytes");
        }
        return ListenAddress{"unix:" + path, path};
    }
    if (!is_host_port(text)) {
        return fail(Errc::InvalidArgument, "\"" + text + "\" is neither unix:PATH nor HOST:PORT");
    }
    return ListenAddress{text, ""};
}

}  // namespace penstock::gateway
