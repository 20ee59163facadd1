// SPDX-License-Identifier: Apache-2.0
// Shared by the conversions: error texts, and rules that apply to more than one message.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/rpc/convert.hpp"

namespace penstock::rpc {

inline std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

inline std::string indexed(const char* list, int index) {
    return std::string(list) + "[" + std::to_string(index) + "]";
}

// Names appear in logs, metrics and on terminals: printable ASCII without the separators of
// "namespace/name:port/TCP".
inline Status check_name(const char* field, std::string_view name, bool may_be_empty) {
    if (name.empty() && !may_be_empty) {
        return invalid(std::string(field) + " is empty");
    }
    if (name.size() > kNameBytesMax) {
        return invalid(std::string(field) + " is longer than " + std::to_string(kNameBytesMax) + " bytes");
    }
    for (const char c : name) {
        if (c <= ' ' || c > '~' || c == '/' || c == ':') {
            return invalid(std::string(field) +
                           " contains a character that is not printable ASCII, or is a space, '/' or ':'");
        }
    }
    return {};
}

// The Kubernetes API's rule for endpoint addresses. Link-local addresses are refused for all classes, since
// they are valid on one link only.
inline Status check_unicast(const IpAddr& address) {
    const char* why = address.is_unspecified()   ? "unspecified"
                      : address.is_loopback()    ? "loopback"
                      : address.is_link_local()  ? "link-local"
                      : address.is_multicast()   ? "multicast"
                      : address.is_reserved_v4() ? "reserved"
                                                 : nullptr;
    if (why != nullptr) {
        return invalid("address " + address.to_string() + " is " + why);
    }
    return {};
}

inline Result<IpAddr> unicast_address(std::string_view text) {
    PENSTOCK_TRY_IN("address", auto address, IpAddr::parse(text));
    PENSTOCK_TRY_STATUS(check_unicast(address));
    return address;
}

template <typename T>
void sort_unique(std::vector<T>& values) {
    std::ranges::sort(values);
    const auto repeated = std::ranges::unique(values);
    values.erase(repeated.begin(), repeated.end());
}

}  // namespace penstock::rpc
