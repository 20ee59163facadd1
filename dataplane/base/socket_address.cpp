// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/socket_address.hpp"

#include "dataplane/base/text.hpp"

namespace penstock {

Result<SocketAddress> SocketAddress::parse(std::string_view text) {
    const auto refuse = [&text] {
        return fail(Errc::InvalidArgument,
                    "\"" + std::string(text) + "\" must be ADDRESS:PORT, with an IPv6 address in brackets");
    };
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return refuse();
    }
    const std::string_view host = text.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const auto address = IpAddr::parse(bracketed ? host.substr(1, host.size() - 2) : host);
    if (!address || bracketed != (address->family() == IpFamily::V6)) {
        return refuse();
    }
    const auto port = whole_number<L4Port>(text.substr(colon + 1));
    if (!port) {
        return refuse();
    }
    return SocketAddress{*address, *port};
}

std::string SocketAddress::to_string() const {
    const std::string text = address.to_string();
    return (address.is_v4() ? text : "[" + text + "]") + ":" + std::to_string(port);
}

}  // namespace penstock
