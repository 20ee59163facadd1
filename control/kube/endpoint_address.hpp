// SPDX-License-Identifier: Apache-2.0
// addresses[0] of an endpoint, the only one that is used (EP-005), parsed once (GEN-005). A malformed address
// is kept as written, so that the semantics room can refuse it by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/base/interned.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::kube {

class EndpointAddress {
 public:
    // No address.
    EndpointAddress() = default;
    EndpointAddress(std::string_view text) {  // NOLINT(google-explicit-constructor)
        if (const auto address = IpAddr::parse(text)) {
            address_ = *address;
        } else {
            bad_text_ = text;
        }
    }
    EndpointAddress(const char* text)
        : EndpointAddress(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
    EndpointAddress(const std::string& text)
        : EndpointAddress(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool is_absent() const noexcept { return !address_ && bad_text_.empty(); }
    // nullopt: absent or malformed.
    [[nodiscard]] const std::optional<IpAddr>& ip() const noexcept { return address_; }
    // The text of a malformed address.
    [[nodiscard]] std::string_view bad_text() const noexcept { return bad_text_; }

    bool operator==(const EndpointAddress&) const = default;

 private:
    std::optional<IpAddr> address_;
    InternedText bad_text_;
};

}  // namespace penstock::kube
