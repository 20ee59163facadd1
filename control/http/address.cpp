// SPDX-License-Identifier: Apache-2.0
#include "control/http/address.hpp"

#include <charconv>

namespace penstock::http {

Result<Address> parse_address(const std::string& text) {
    const auto refuse = [&text] {
        return fail(Errc::InvalidArgument,
                    "\"" + text + "\" must be ADDRESS:PORT, with an IPv6 address in brackets");
    };
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        return refuse();
    }
    std::string host = text.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const auto parsed = IpAddr::parse(bracketed ? host.substr(1, host.size() - 2) : host);
    if (!parsed || bracketed != (parsed->family() == IpFamily::V6)) {
        return refuse();
    }
    Address address{.host = *parsed};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error != std::errc{} || stop != end) {
        return refuse();
    }
    return address;
}

}  // namespace penstock::http
