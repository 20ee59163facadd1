// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/interface_address.hpp"

#include "dataplane/base/text.hpp"

namespace penstock::drivers {

Result<InterfaceAddress> InterfaceAddress::parse(std::string_view text) {
    const std::string shown(text);
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return fail(Errc::InvalidArgument,
                    "address " + shown + ": the prefix length is missing (write " + shown + "/24)");
    }
    PENSTOCK_TRY(auto address, IpAddr::parse(text.substr(0, slash)));
    const auto length = whole_number<uint8_t>(text.substr(slash + 1));
    if (!length || *length > address.bits()) {
        return fail(Errc::InvalidArgument, "address " + shown +
                                               ": the prefix length must be a number from 0 to " +
                                               std::to_string(address.bits()));
    }
    if (address.is_unspecified() || address.is_loopback() || address.is_multicast()) {
        return fail(Errc::InvalidArgument,
                    "address " + shown + ": an interface needs a unicast address of its own");
    }
    return InterfaceAddress{address, *length};
}

std::string InterfaceAddress::to_string() const {
    return address.to_string() + "/" + std::to_string(prefix_length);
}

}  // namespace penstock::drivers
