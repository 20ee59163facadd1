// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/address_rules.hpp"

namespace penstock::semantics {

std::string_view unfit_as_frontend(const IpAddr& address) noexcept {
    if (address.is_unspecified()) {
        return "the unspecified address";
    }
    if (address.is_loopback()) {
        return "a loopback address";
    }
    if (address.is_link_local()) {
        return "a link-local address";
    }
    if (address.is_multicast()) {
        return "a multicast address";
    }
    if (address == IpAddr::v4(255, 255, 255, 255)) {
        return "the broadcast address";
    }
    return "";
}

std::string_view unfit_as_endpoint(const IpAddr& address) noexcept {
    if (const std::string_view why = unfit_as_frontend(address); !why.empty()) {
        return why;
    }
    return address.is_reserved_v4() ? "in 240.0.0.0/4, which is reserved" : "";
}

}  // namespace penstock::semantics
