// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/port_option.hpp"

#include <net/if.h>

#include <algorithm>
#include <set>

#include "control/options/mistakes.hpp"
#include "control/options/values.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/text.hpp"
#include "drivers/eal/device_string.hpp"

namespace penstock::gateway {
namespace {

std::string quoted(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

std::unexpected<Error> refuse_field(std::string_view field, const std::string& why) {
    return fail(Errc::InvalidArgument, std::string(field) + ": " + why);
}

// Names that the kernel accepts (dev_valid_name), without ':' (alias) and '%' (pattern).
bool is_interface_name(std::string_view name) {
    return !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
           std::ranges::all_of(
               name, [](char c) { return c > ' ' && c <= '~' && c != '/' && c != ':' && c != '%'; });
}

Status read_field(PortOption& port, std::string_view name, std::string_view value) {
    if (name == "device") {
        if (auto device = drivers::DeviceString::parse(value); !device) {
            return std::unexpected(std::move(device.error()));  // names the field itself
        }
        port.device = value;
    } else if (name == "twin") {
        if (!is_interface_name(value)) {
            return refuse_field(
                name, quoted(value) +
                          " is not an interface name (1 to 15 characters, without '/', ':', '%' and blanks)");
        }
        port.twin = value;
    } else if (name == "address") {
        for (const auto piece : split(value, ',')) {
            const auto address = drivers::InterfaceAddress::parse(piece);
            if (!address) {
                return refuse_field(name, address.error().what);
            }
            if (std::ranges::find(port.addresses, address->address, &drivers::InterfaceAddress::address) !=
                port.addresses.end()) {
                return refuse_field(name, address->address.to_string() + " is given twice");
            }
            port.addresses.push_back(*address);
        }
    } else if (name == "mtu") {
        const auto mtu = options::parse_number(value, {kMtuMin, kMtuMax, "bytes"});
        if (!mtu) {
            return refuse_field(name, mtu.error().what);
        }
        port.mtu = static_cast<uint16_t>(*mtu);
    } else if (name == "mss") {
        const auto mss = options::parse_number(value, {kMssMin, kMssMax, "bytes"});
        if (!mss) {
            return refuse_field(name, mss.error().what);
        }
        port.mss = static_cast<uint16_t>(*mss);
    } else if (name == "reverse-path") {
        const auto check = parse_reverse_path(value);
        if (!check) {
            return refuse_field(name, check.error().what);
        }
        port.reverse_path = *check;
    } else {
        return fail(Errc::InvalidArgument,
                    "unknown field " + quoted(name) +
                        "; the fields are device, twin, address, mtu, mss, reverse-path");
    }
    return {};
}

}  // namespace

Result<config::ReversePath> parse_reverse_path(std::string_view text) {
    using enum config::ReversePath;
    std::vector<options::Word<config::ReversePath>> words;
    for (const config::ReversePath check : {Feasible, Strict, Loose, Off}) {
        words.push_back({config::to_string(check), check});
    }
    return options::parse_word(text, words);
}

Result<PortOption> PortOption::parse(std::string_view text) {
    PortOption port;
    std::set<std::string_view> seen;
    for (const auto field : split(text, ';')) {
        if (field.empty()) {
            continue;  // a ';' at the end is no error
        }
        const size_t equals = field.find('=');
        if (equals == std::string_view::npos) {
            return fail(Errc::InvalidArgument, quoted(field) + " is not FIELD=VALUE");
        }
        const std::string_view name = trimmed(field.substr(0, equals));
        if (!seen.insert(name).second) {
            return refuse_field(name, "is given twice");
        }
        if (auto status = read_field(port, name, trimmed(field.substr(equals + 1))); !status) {
            return std::unexpected(std::move(status.error()));
        }
    }
    if (port.device.empty()) {
        return refuse_field("device", "is missing");
    }
    if (port.twin.empty()) {
        return refuse_field("twin", "is missing");
    }
    const auto ipv6 = std::ranges::find(port.addresses, IpFamily::V6,
                                        [](const auto& entry) { return entry.address.family(); });
    if (ipv6 != port.addresses.end() && port.mtu < kMtuMinIpv6) {
        return refuse_field("mtu", std::to_string(port.mtu) + " is below the " + std::to_string(kMtuMinIpv6) +
                                       " that IPv6 needs for " + ipv6->to_string());
    }
    return port;
}

Status check_ports(const std::vector<PortOption>& ports) {
    if (ports.empty()) {
        return fail(Errc::InvalidArgument, "a gateway needs at least one --port");
    }
    if (ports.size() > limits::kNicPortsMax) {
        return fail(Errc::InvalidArgument, "got " + std::to_string(ports.size()) +
                                               " --port options; at most " +
                                               std::to_string(limits::kNicPortsMax) + " are supported");
    }
    options::Mistakes mistakes;
    const auto check_once = [&](bool is_new, const std::string& what) {
        if (!is_new) {
            mistakes.note({Errc::InvalidArgument, "--port: " + what + " is given to two ports"});
        }
    };
    std::set<std::string> devices;
    std::set<std::string> interfaces;
    std::set<std::string> twins;
    std::set<IpAddr> addresses;
    for (const PortOption& port : ports) {
        if (const auto device = drivers::DeviceString::parse(port.device)) {
            check_once(devices.insert(device->name).second, "device " + device->name);
            if (const std::string interface = device->kernel_interface(); !interface.empty()) {
                check_once(interfaces.insert(interface).second, "interface " + interface);
            }
        }
        check_once(twins.insert(port.twin).second, "twin " + port.twin);
        for (const auto& address : port.addresses) {
            // Link-local addresses are per link: routers often have fe80::1 on each.
            if (!address.address.is_link_local()) {
                check_once(addresses.insert(address.address).second,
                           "address " + address.address.to_string());
            }
        }
    }
    return mistakes.result();
}

}  // namespace penstock::gateway
