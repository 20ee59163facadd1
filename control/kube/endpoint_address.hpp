// addresses[0] of an endpoint, the only one that counts (EP-005), read once (GEN-005). What is no address is kept as it was written: the
// semantics room refuses it by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/base/interned.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::kube {

class EndpointAddress {
 public:
    // There is none.
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
    // nullopt: there is none, or what is there is no address.
    [[nodiscard]] const std::optional<IpAddr>& ip() const noexcept { return address_; }
    // What is there instead of an address.
    [[nodiscard]] std::string_view bad_text() const noexcept { return bad_text_; }

    bool operator==(const EndpointAddress&) const = default;

 private:
    std::optional<IpAddr> address_;
    InternedText bad_text_;
};

}  // namespace penstock::kube
