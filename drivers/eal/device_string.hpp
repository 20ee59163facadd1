// SPDX-License-Identifier: Apache-2.0
// A --port device as the operator writes it: a PCI address ("0000:03:00.0", optionally with arguments) or a
// vdev string ("net_af_packet0,iface=veth0"). Pure: parsing, completing and formatting.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::drivers {

[[nodiscard]] bool is_pci_address(std::string_view name);  // [dddd:]bb:dd.f

struct DeviceString {
    std::string name;    // "0000:03:00.0" or "net_af_packet0"
    std::string driver;  // "net_af_packet"; "" for a PCI device (known after probing)
    bool is_pci = false;
    std::vector<std::pair<std::string, std::string>> arguments;  // in the order given

    // InvalidArgument: neither a PCI address nor a vdev name; an argument without a value; an argument given
    // twice (except the members of a bond); a vdev that needs an interface without one; an invalid bond
    // (bond.hpp).
    static Result<DeviceString> parse(std::string_view text);

    [[nodiscard]] const std::string* argument(std::string_view key) const noexcept;
    // The members of a bond, PCI addresses with their domain; empty for all others.
    [[nodiscard]] std::vector<std::string> members() const;
    // Adds the argument if it is not given; true if it was added.
    bool complete(std::string_view key, std::string value);
    // The part after the name in EAL's devargs: "iface=veth0,qpairs=2".
    [[nodiscard]] std::string arguments_text() const;
    [[nodiscard]] std::string to_string() const;

    // The Linux interface that the device takes its frames from: the object of the lock and the guard. "" if
    // there is none.
    [[nodiscard]] std::string kernel_interface() const;
};

}  // namespace penstock::drivers
