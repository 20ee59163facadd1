// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/pool_table.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "control/semantics/text.hpp"

namespace penstock::ipam {
namespace {

// Addresses of the range that end in .0 or .255.
Number count_buggy(const AddressRange& range) {
    const auto below = [](Number bound) {  // in 0 .. bound-1
        const Number rest = bound % 256;
        return bound / 256 * 2 + (rest > 0 ? 1 : 0);
    };
    return below(to_number(range.last) + 1) - below(to_number(range.first));
}

}  // namespace

PoolTable::PoolTable(std::vector<Pool> pools) : pools_(std::move(pools)), parts_(pools_.size()) {
    std::ranges::sort(pools_, {}, &Pool::name);
    for (Index index = 0; index < pools_.size(); ++index) {
        const Pool& pool = pools_[index];
        order_.push_back(index);
        if (pool.enforce) {
            enforcing_.push_back(index);
        }
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            parts_[index][index_of(family)].free =
                FreeRanges(family, pool.avoid_buggy_ips && family == IpFamily::V4);
        }
        for (const AddressRange& range : pool.ranges) {
            last_by_first_.emplace(range.first, std::pair(range.last, index));
            Part& part = parts_[index][index_of(range.first.family())];
            part.free.add(to_number(range.first), to_number(range.last));
            part.total += to_number(range.last) - to_number(range.first) + 1;
            if (pool.avoid_buggy_ips && range.first.is_v4()) {
                part.total -= count_buggy(range);
            }
        }
        for (const auto& [address, service] : pool.reservations) {
            Part& part = parts_[index][index_of(address.family())];
            part.free.take(to_number(address));
            ++part.reserved;
            reserved_.emplace(address, service);
            reservations_[service].push_back(address);
        }
    }
    for (auto& [service, addresses] : reservations_) {
        std::ranges::sort(addresses);
    }
    // Lower non-zero priorities first; 0 becomes the largest unsigned value.
    std::ranges::stable_sort(order_, {}, [&](Index index) {
        const Pool& pool = pools_[index];
        return pool.is_pinned() ? std::tuple(false, pool.priority == 0, pool.priority)
                                : std::tuple(true, false, 0);
    });
}

std::optional<PoolTable::Index> PoolTable::find(const std::string& name) const {
    const auto found = std::ranges::lower_bound(pools_, name, {}, &Pool::name);
    if (found == pools_.end() || found->name != name) {
        return std::nullopt;
    }
    return static_cast<Index>(found - pools_.begin());
}

std::optional<PoolTable::Index> PoolTable::containing(const IpAddr& address) const {
    auto range = last_by_first_.upper_bound(address);
    // The bytes of an IPv4 address sort among those of IPv6 addresses, but the range that precedes it can
    // contain it only if it has the same family.
    if (range == last_by_first_.begin() || (--range)->second.first < address ||
        range->first.family() != address.family()) {
        return std::nullopt;
    }
    return range->second.second;
}

const std::string& PoolTable::name_of_pool_with(const IpAddr& address) const {
    static const std::string kNone;
    const auto pool = containing(address);
    return pool ? pools_[*pool].name : kNone;
}

const kube::ObjectName* PoolTable::reserved_for(const IpAddr& address) const {
    const auto found = reserved_.find(address);
    return found == reserved_.end() ? nullptr : &found->second;
}

const std::vector<IpAddr>* PoolTable::reservations_of(const kube::ObjectName& service) const {
    const auto found = reservations_.find(service);
    return found == reservations_.end() ? nullptr : &found->second;
}

bool PoolTable::names_namespace(const Pool& pool, const std::string& name,
                                const annotations::Labels& labels) const {
    return std::ranges::find(pool.namespaces, name) != pool.namespaces.end() ||
           (pool.namespace_selector && pool.namespace_selector->matches(labels));
}

std::optional<PassedOver> PoolTable::obstacle_to(Index index, const Request& request,
                                                 const annotations::Labels& labels, Choice choice) const {
    const Pool& pool = pools_[index];
    const std::string& name = request.age.service.namespace_name;
    // The fence comes first: it must not depend on what the Service or its owner sets (LB-023).
    const bool named = names_namespace(pool, name, labels);
    if (!(pool.enforce && named)) {
        const auto fence = std::ranges::find_if(
            enforcing_, [&](Index other) { return names_namespace(pools_[other], name, labels); });
        if (fence != enforcing_.end()) {
            return PassedOver{Obstacle::NotAllowed, "namespace " + name +
                                                        " gets addresses only from pools that enforce, as " +
                                                        semantics::quoted(pools_[*fence].name)};
        }
    }
    if (!named && (pool.enforce || !pool.namespaces.empty() || pool.namespace_selector)) {
        return PassedOver{Obstacle::NotAllowed, "not for namespace " + name};
    }
    if (pool.service_selector && !pool.service_selector->matches(request.labels)) {
        return PassedOver{Obstacle::NotAllowed, "its serviceSelector does not match"};
    }
    if (pool.internal != request.internal) {
        return PassedOver{Obstacle::OtherScope, pool.internal
                                                    ? "only for Services that request an internal address"
                                                    : "not internal, but an internal address is requested"};
    }
    if (pool.disabled) {
        return PassedOver{Obstacle::Disabled, "disabled"};
    }
    if (choice == Choice::Free && !pool.auto_assign) {
        return PassedOver{Obstacle::NotAutomatic, "autoAssign is false"};
    }
    return std::nullopt;
}

bool PoolTable::has_family(Index pool, IpFamily family) const {
    return std::ranges::any_of(
        pools_[pool].ranges, [family](const AddressRange& range) { return range.first.family() == family; });
}

std::optional<IpAddr> PoolTable::lowest_free(Index pool, IpFamily family) {
    return parts_[pool][index_of(family)].free.lowest();
}

bool PoolTable::can_be_free(Index pool, const IpAddr& address) const {
    return !reserved_.contains(address) && !(pools_[pool].avoid_buggy_ips && is_buggy(address));
}

void PoolTable::use(const IpAddr& address) {
    if (const auto pool = containing(address)) {
        Part& part = parts_[*pool][index_of(address.family())];
        ++part.used;
        if (can_be_free(*pool, address)) {
            ++part.used_ordinary;
            part.free.take(to_number(address));
        }
    }
}

void PoolTable::release(const IpAddr& address) {
    if (const auto pool = containing(address)) {
        Part& part = parts_[*pool][index_of(address.family())];
        --part.used;
        if (can_be_free(*pool, address)) {
            --part.used_ordinary;
            part.free.put(to_number(address));
        }
    }
}

AddressCounts PoolTable::counts(Index pool, size_t family) const {
    const Part& part = parts_[pool][family];
    return {.total = saturated(part.total),
            .used = part.used,
            .free = saturated(part.total - part.reserved - part.used_ordinary)};
}

}  // namespace penstock::ipam
