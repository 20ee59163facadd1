// SPDX-License-Identifier: Apache-2.0
#include "control/kube/pool_values.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace penstock::kube {
namespace {

using ipam::AddressRange;

std::string printable(std::string_view text) {
    std::string result(text);
    std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
    return result;
}

// `rule` may quote the text as well.
std::unexpected<Error> refused(std::string_view text, std::string_view rule) {
    return fail(Errc::InvalidArgument, shown_value(text) + ": " + printable(rule));
}

IpAddr last_of(const Prefix& prefix) {
    std::array<uint8_t, 16> bytes = prefix.address().bytes();
    const size_t fixed_bits = bytes.size() * 8 - prefix.address().bits() + prefix.length();
    for (size_t bit = fixed_bits; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] | (0x80u >> (bit % 8)));
    }
    return prefix.address().is_v4() ? IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15])
                                    : IpAddr::v6(bytes);
}

// Addresses that are never served as frontends (XIP-004): "" if the range has none of them.
std::string_view unfit_part_of(const AddressRange& range) {
    struct Unfit {
        AddressRange range;
        std::string_view name;
    };
    static const auto kUnfit = [] {
        std::vector<Unfit> all;
        for (const auto& [text, name] :
             {std::pair("0.0.0.0/32", "the unspecified address"),
              std::pair("127.0.0.0/8", "loopback addresses"),
              std::pair("169.254.0.0/16", "link-local addresses"),
              std::pair("224.0.0.0/4", "multicast addresses"),
              std::pair("255.255.255.255/32", "the broadcast address"),
              std::pair("::/128", "the unspecified address"), std::pair("::1/128", "a loopback address"),
              std::pair("fe80::/10", "link-local addresses"), std::pair("ff00::/8", "multicast addresses")}) {
            const Prefix prefix = Prefix::parse(text).value();
            all.push_back({{prefix.address(), last_of(prefix)}, name});
        }
        return all;
    }();
    for (const Unfit& unfit : kUnfit) {
        if (unfit.range.first.family() == range.first.family() && range.first <= unfit.range.last &&
            unfit.range.first <= range.last) {
            return unfit.name;
        }
    }
    // The order of IpAddr has IPv4 at its place among the IPv6 addresses, ::ffff:0:0/96.
    const IpAddr mapped = IpAddr::v4(0, 0, 0, 0);
    return !range.first.is_v4() && range.first < mapped && mapped < range.last ? "IPv4-mapped addresses" : "";
}

Result<AddressRange> parse_cidr(std::string_view text, size_t slash) {
    const auto prefix = Prefix::parse(text);
    if (!prefix) {
        return refused(text, prefix.error().what);
    }
    // Prefix::parse() has accepted this part already.
    if (const auto address = IpAddr::parse(text.substr(0, slash)); address && *address != prefix->address()) {
        return refused(text, "has bits behind its length; write " + prefix->to_string() + ", or " +
                                 Prefix::host(*address).to_string() + " for the one address");
    }
    return AddressRange{prefix->address(), last_of(*prefix)};
}

Result<AddressRange> parse_ends(std::string_view text, size_t dash) {
    const auto trimmed = [](std::string_view end) {
        const size_t first = end.find_first_not_of(' ');
        return first == std::string_view::npos ? std::string_view()
                                               : end.substr(first, end.find_last_not_of(' ') + 1 - first);
    };
    const auto first = IpAddr::parse(trimmed(text.substr(0, dash)));
    const auto last = IpAddr::parse(trimmed(text.substr(dash + 1)));
    if (!first || !last) {
        return refused(text, (first ? last : first).error().what);
    }
    if (first->family() != last->family()) {
        return refused(text, "one end is an IPv4 address, the other one an IPv6 address");
    }
    if (*last < *first) {
        return refused(text, "the last address is below the first one");
    }
    return AddressRange{*first, *last};
}

auto order_of(const AddressRange& range) {
    return std::tuple(!range.first.is_v4(), range.first, range.last);
}

bool contains(const AddressRange& range, const IpAddr& address) {
    return range.first.family() == address.family() && range.first <= address && address <= range.last;
}

bool is_buggy(const IpAddr& address) {
    const uint8_t end = address.bytes().back();
    return address.is_v4() && (end == 0 || end == 255);
}

}  // namespace

std::string shown_value(std::string_view text) {
    constexpr size_t kShown = 80;
    return "(\"" + printable(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "") + "\")";
}

Result<AddressRange> parse_address_range(std::string_view text) {
    const size_t slash = text.find('/');
    const size_t dash = text.find('-');
    if (slash == std::string_view::npos && dash == std::string_view::npos) {
        const auto address = IpAddr::parse(text);
        return refused(text, "must be a CIDR (192.0.2.0/24) or a range (192.0.2.10-192.0.2.20)" +
                                 (address ? "; write " + Prefix::host(*address).to_string() : ""));
    }
    auto range = dash == std::string_view::npos ? parse_cidr(text, slash) : parse_ends(text, dash);
    if (range) {
        if (const std::string_view unfit = unfit_part_of(*range); !unfit.empty()) {
            return refused(text, "contains " + std::string(unfit) + ", which no Service can have");
        }
    }
    return range;
}

std::optional<Overlap> overlap_in(const std::vector<AddressRange>& ranges) {
    std::vector<size_t> order(ranges.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t index) { return order_of(ranges[index]); });
    for (size_t i = 1; i < order.size(); ++i) {
        // Before the first overlap the ranges are disjoint, so the predecessor has the highest end so far.
        if (contains(ranges[order[i - 1]], ranges[order[i]].first)) {
            return Overlap{std::max(order[i - 1], order[i]), std::min(order[i - 1], order[i])};
        }
    }
    return std::nullopt;
}

void sort_ranges(std::vector<AddressRange>& ranges) {
    std::ranges::sort(ranges, {}, order_of);
}

Result<IpAddr> parse_reserved_address(std::string_view text, const std::vector<AddressRange>& ranges,
                                      bool avoid_buggy_ips) {
    const auto address = IpAddr::parse(text);
    if (!address) {
        return refused(text, address.error().what);
    }
    if (std::ranges::none_of(ranges, [&](const AddressRange& range) { return contains(range, *address); })) {
        return refused(text, "is not one of the pool's addresses");
    }
    if (avoid_buggy_ips && is_buggy(*address)) {
        return refused(text, "ends in .0 or .255, which avoidBuggyIPs excludes");
    }
    return *address;
}

std::optional<LabelFault> append_requirement(const LabelRequirement& requirement, std::string& selector) {
    const bool has_list = requirement.op == "In" || requirement.op == "NotIn";
    if (!annotations::is_label_key(requirement.key)) {
        return LabelFault{"key", shown_value(requirement.key) + ": is not a label key"};
    }
    if (!has_list && requirement.op != "Exists" && requirement.op != "DoesNotExist") {
        return LabelFault{"operator",
                          shown_value(requirement.op) + ": must be In, NotIn, Exists or DoesNotExist"};
    }
    if (has_list == requirement.values.empty()) {
        return LabelFault{"values", has_list
                                        ? "must have at least one value for the operator " + requirement.op
                                        : "must be absent for the operator " + requirement.op};
    }
    std::string list;
    for (const std::string& value : requirement.values) {
        if (!annotations::is_label_value(value)) {
            return LabelFault{"values", shown_value(value) + ": is not a label value"};
        }
        list.append(list.empty() ? "(" : ",").append(value);
    }
    selector.append(selector.empty() ? "" : ",").append(requirement.op == "DoesNotExist" ? "!" : "");
    selector.append(requirement.key);
    if (has_list) {
        selector.append(requirement.op == "In" ? " in " : " notin ").append(list).append(")");
    }
    return std::nullopt;
}

}  // namespace penstock::kube
