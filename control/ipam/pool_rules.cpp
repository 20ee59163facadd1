// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/pool_rules.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "control/ipam/address_number.hpp"
#include "control/semantics/text.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::ipam {
namespace {

// A bound for the work of the allocator; no cluster needs more.
constexpr size_t kRangesMax = 1024;

std::string text_of(const AddressRange& range) {
    return range.first == range.last ? range.first.to_string()
                                     : range.first.to_string() + "-" + range.last.to_string();
}

bool overlap(const AddressRange& a, const AddressRange& b) {
    return a.first.family() == b.first.family() && a.first <= b.last && b.first <= a.last;
}

bool contains(const Pool& pool, const IpAddr& address) {
    return std::ranges::any_of(pool.ranges, [&](const AddressRange& range) {
        return overlap(range, {.first = address, .last = address});
    });
}

// All addresses of a prefix.
AddressRange range_of(const Prefix& prefix) {
    const Number first = to_number(prefix.address());
    const unsigned host_bits = prefix.address().bits() - prefix.length();
    const Number hosts = host_bits == 128 ? ~Number{0} : (Number{1} << host_bits) - 1;
    return {.first = prefix.address(), .last = to_address(first | hosts, prefix.family())};
}

struct Forbidden {
    Prefix prefix;
    std::string_view what;
};

// Addresses that are never valid as a LoadBalancer IP.
const std::vector<Forbidden>& forbidden() {
    const auto prefix = [](const char* text) { return *Prefix::parse(text); };
    static const std::vector<Forbidden> kForbidden = {
        {prefix("0.0.0.0/8"), "unspecified addresses"},
        {prefix("127.0.0.0/8"), "loopback addresses"},
        {prefix("169.254.0.0/16"), "link-local addresses"},
        {prefix("224.0.0.0/4"), "multicast addresses"},
        {prefix("240.0.0.0/4"), "reserved addresses"},
        // ::, ::1, and IPv4-mapped addresses, which are not a family of their own
        {prefix("::/8"), "reserved addresses, RFC 4291"},
        {prefix("fe80::/10"), "link-local addresses"},
        {prefix("ff00::/8"), "multicast addresses"}};
    return kForbidden;
}

// "pool "edge": addresses: ", for errors.
std::string place(const Pool& pool, std::string_view field) {
    return "pool " + semantics::quoted(pool.name) + ": " + std::string(field) + ": ";
}

class Checker {
 public:
    explicit Checker(const std::vector<ProtectedPrefix>& protected_prefixes)
        : protected_(protected_prefixes) {}

    Status check(Pool& pool) {
        if (!semantics::is_dns_name(pool.name)) {
            return invalid(place(pool, "name") + "expected 1-253 characters of a-z, 0-9, '-' and '.'");
        }
        if (!names_.insert(pool.name).second) {
            return invalid(place(pool, "name") + "another pool has the same name");
        }
        PENSTOCK_TRY_STATUS(check_ranges(pool));
        PENSTOCK_TRY_STATUS(check_reservations(pool));
        if (pool.enforce && pool.namespaces.empty() && !pool.namespace_selector) {
            return invalid(place(pool, "enforce") + "requires namespaces or namespaceSelector");
        }
        return {};
    }

 private:
    static Status invalid(std::string what) { return fail(Errc::InvalidArgument, std::move(what)); }
    static Status invalid_address(const Pool& pool, const AddressRange& range, std::string_view why) {
        return invalid(place(pool, "addresses") + text_of(range) + " " + std::string(why));
    }

    Status check_range(const Pool& pool, const AddressRange& range) const {
        if (range.first.family() != range.last.family()) {
            return invalid_address(pool, range, "has addresses of both families");
        }
        if (range.last < range.first) {
            return invalid_address(pool, range, "ends before it begins");
        }
        for (const char* everything : {"0.0.0.0/0", "::/0"}) {
            if (range == range_of(*Prefix::parse(everything))) {
                return invalid_address(pool, range, "is all addresses of the family");
            }
        }
        for (const Forbidden& rule : forbidden()) {
            if (overlap(range, range_of(rule.prefix))) {
                return invalid_address(
                    pool, range, "overlaps " + rule.prefix.to_string() + " (" + std::string(rule.what) + ")");
            }
        }
        for (const ProtectedPrefix& rule : protected_) {
            if (overlap(range, range_of(rule.prefix))) {
                return invalid_address(
                    pool, range, "overlaps " + rule.prefix.to_string() + " (" + std::string(rule.what) + ")");
            }
        }
        return {};
    }

    Status check_ranges(Pool& pool) {
        if (pool.ranges.empty() || pool.ranges.size() > kRangesMax) {
            return invalid(place(pool, "addresses") + "expected 1-" + std::to_string(kRangesMax) +
                           " ranges, found " + std::to_string(pool.ranges.size()));
        }
        for (const AddressRange& range : pool.ranges) {
            PENSTOCK_TRY_STATUS(check_range(pool, range));
        }
        std::ranges::sort(pool.ranges);
        for (const AddressRange& range : pool.ranges) {
            // The neighbours in the order of all ranges are the only ones that can overlap.
            auto next = accepted_.lower_bound(range.first);
            for (const bool before : {false, true}) {
                if (before ? next == accepted_.begin() : next == accepted_.end()) {
                    continue;
                }
                const auto& [first, other] = before ? *std::prev(next) : *next;
                const AddressRange other_range{.first = first, .last = other.first};
                if (overlap(range, other_range)) {
                    return invalid_address(
                        pool, range,
                        "overlaps " + text_of(other_range) + " of pool " + semantics::quoted(other.second));
                }
            }
            accepted_.emplace(range.first, std::pair(range.last, pool.name));
        }
        return {};
    }

    Status check_reservations(const Pool& pool) {
        std::set<IpAddr> addresses;
        for (const Reservation& reservation : pool.reservations) {
            const std::string where = place(pool, "reservations") + reservation.address.to_string() + " ";
            if (!semantics::is_dns_name(reservation.service.name) ||
                !semantics::is_dns_name(reservation.service.namespace_name)) {
                return invalid(where + "names no valid Service: namespace and name are required");
            }
            if (!contains(pool, reservation.address)) {
                return invalid(where + "is not in the addresses of the pool");
            }
            if (pool.avoid_buggy_ips && is_buggy(reservation.address)) {
                return invalid(where + "ends in .0 or .255, which avoidBuggyIPs excludes");
            }
            if (!addresses.insert(reservation.address).second) {
                return invalid(where + "is reserved twice");
            }
        }
        return {};
    }

    const std::vector<ProtectedPrefix>& protected_;
    std::set<std::string> names_;
    std::map<IpAddr, std::pair<IpAddr, std::string>> accepted_;  // last address and pool, by first address
};

}  // namespace

std::vector<std::string> mistakes_in(std::vector<Pool> pools,
                                     const std::vector<ProtectedPrefix>& protected_prefixes) {
    Checker checker(protected_prefixes);
    std::vector<std::string> mistakes;
    for (Pool& pool : pools) {
        if (const Status checked = checker.check(pool); !checked) {
            mistakes.push_back(checked.error().what);
        }
    }
    return mistakes;
}

Result<std::vector<Pool>> validate(std::vector<Pool> pools,
                                   const std::vector<ProtectedPrefix>& protected_prefixes) {
    Checker checker(protected_prefixes);
    for (Pool& pool : pools) {
        PENSTOCK_TRY_STATUS(checker.check(pool));
    }
    return pools;
}

}  // namespace penstock::ipam
