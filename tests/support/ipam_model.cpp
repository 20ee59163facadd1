// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ipam_model.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <tuple>

#include "control/ipam/request.hpp"

namespace penstock::test {
namespace ipam_model {

using Reason = ipam::RefusalReason;

std::string annotation(const kube::Service& service, const std::string& key) {
    const auto found = service.meta.annotations.find("penstock.io/" + key);
    return found == service.meta.annotations.end() ? "" : found->second;
}

bool asks_for_internal(const kube::Service& service) {
    return annotation(service, "scope") == "internal";
}

bool ends_badly(const IpAddr& address) {
    return address.is_v4() && (address.bytes()[15] == 0 || address.bytes()[15] == 255);
}

std::vector<IpAddr> all_addresses(const ipam::Pool& pool, IpFamily family) {
    std::vector<IpAddr> result;
    for (const ipam::AddressRange& range : pool.ranges) {
        auto bytes = range.first.bytes();
        while (range.first.family() == family) {
            result.push_back(family == IpFamily::V4 ? IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15])
                                                    : IpAddr::v6(bytes));
            if (result.back() == range.last) {
                break;
            }
            for (size_t i = 15; ++bytes[i] == 0; --i) {
            }
        }
    }
    std::ranges::sort(result);
    return result;
}

bool covers(const ipam::Pool& pool, const IpAddr& address) {
    return std::ranges::any_of(pool.ranges, [&](const ipam::AddressRange& range) {
        return range.first.family() == address.family() && range.first <= address && address <= range.last;
    });
}

bool names(const ipam::Pool& pool, const std::string& name, const annotations::Labels& labels) {
    return std::ranges::find(pool.namespaces, name) != pool.namespaces.end() ||
           (pool.namespace_selector && pool.namespace_selector->matches(labels));
}

bool has_family(const ipam::Pool& pool, IpFamily family) {
    return std::ranges::any_of(pool.ranges,
                               [&](const auto& range) { return range.first.family() == family; });
}

}  // namespace ipam_model

using namespace ipam_model;

// What a Service asks for.
struct IpamModel::Wish {
    std::vector<IpFamily> families;
    bool all = false;
    std::map<IpFamily, IpAddr> addresses;
    std::string pool;
    std::optional<Reason> mistake;

    explicit Wish(const kube::Service& service) : pool(annotation(service, "address-pool")) {
        for (const std::string& family : service.ip_families) {
            families.push_back(family == "IPv4" ? IpFamily::V4 : IpFamily::V6);
        }
        if (service.ip_family_policy == "SingleStack") {
            families.resize(1);
        }
        all = families.size() == 1 || service.ip_family_policy == "RequireDualStack";
        std::stringstream list(annotation(service, "load-balancer-ips"));
        const bool has_list = !list.str().empty();
        for (std::string item; std::getline(list, item, ',');) {
            const auto address = IpAddr::parse(item);
            if (!address || !addresses.emplace(address->family(), *address).second) {
                mistake = Reason::AddressOutsidePools;
                addresses.clear();
                return;
            }
        }
        if (!service.load_balancer_ip.empty()) {
            const IpAddr field = IpAddr::parse(service.load_balancer_ip).value();
            if (has_list && !(addresses.contains(field.family()) && addresses.at(field.family()) == field)) {
                mistake = Reason::LoadBalancerIPConflict;
                return;
            }
            addresses.emplace(field.family(), field);
        }
        for (const auto& [family, address] : addresses) {
            if (std::ranges::find(families, family) == families.end()) {
                mistake = Reason::FamilyMissing;
            }
        }
    }
    [[nodiscard]] bool has(IpFamily family) const {
        return std::ranges::find(families, family) != families.end();
    }
    // The first address of each family in the status.
    [[nodiscard]] std::vector<IpAddr> shown_by(const kube::Service& service) const {
        std::vector<IpAddr> shown;
        for (const IpFamily family : families) {
            for (const kube::LoadBalancerIngress& ingress : service.ingress) {
                const auto address = IpAddr::parse(ingress.ip);
                if (address && address->family() == family) {
                    shown.push_back(*address);
                    break;
                }
            }
        }
        return shown;
    }
};

bool IpamModel::may_share(const kube::Service& a, const kube::Service& b) {
    const std::string key = annotation(a, "allow-shared-ip");
    if (key.empty() || key != annotation(b, "allow-shared-ip")) {
        return false;
    }
    const auto permits = [](const kube::Service& asked, const kube::Service& asking) {
        const std::string list = "," + annotation(asked, "allow-shared-ip-namespaces") + ",";
        return asked.meta.namespace_name == asking.meta.namespace_name || list == ",*," ||
               list.find("," + asking.meta.namespace_name + ",") != std::string::npos;
    };
    if (!permits(a, b) || !permits(b, a)) {
        return false;
    }
    for (const kube::ServicePort& of_a : a.ports) {
        for (const kube::ServicePort& of_b : b.ports) {
            if (of_a.port == of_b.port && of_a.protocol == of_b.protocol) {
                return false;
            }
        }
    }
    return a.selector == b.selector ||
           (a.external_traffic_policy == "Cluster" && b.external_traffic_policy == "Cluster");
}

bool IpamModel::is_permitted(const kube::Service& service, const ipam::Pool& pool) const {
    const std::string& space = service.meta.namespace_name;
    const auto found = labels_.find(space);
    const annotations::Labels labels = found == labels_.end() ? annotations::Labels() : found->second;
    const bool fenced = std::ranges::any_of(
        pools_, [&](const ipam::Pool& other) { return other.enforce && names(other, space, labels); });
    const bool named = names(pool, space, labels);
    const bool restricted = pool.enforce || !pool.namespaces.empty() || pool.namespace_selector;
    return (!fenced || (pool.enforce && named)) && (!restricted || named) &&
           (!pool.service_selector || pool.service_selector->matches(service.meta.labels));
}

const ipam::Pool* IpamModel::pool_with(const IpAddr& address) const {
    const auto found =
        std::ranges::find_if(pools_, [&](const ipam::Pool& pool) { return covers(pool, address); });
    return found == pools_.end() ? nullptr : &*found;
}

void IpamModel::restart() {
    *this = IpamModel();
}

std::vector<IpamModel::Name> IpamModel::by_age() const {
    std::vector<Name> result;
    for (const auto& [name, service] : services_) {
        result.push_back(name);
    }
    std::ranges::sort(result, {}, [&](const Name& name) {
        const kube::ObjectMeta& meta = services_.at(name)->meta;  // times of one format sort as text
        return std::tuple(meta.creation_timestamp, meta.uid, name);
    });
    return result;
}

bool IpamModel::may_keep(const Name& name, const IpAddr& address) const {
    const kube::Service& service = *services_.at(name);
    const Wish wish(service);
    const ipam::Pool* pool = pool_with(address);
    if (!wish.has(address.family()) || (pool != nullptr && pool->internal != asks_for_internal(service))) {
        return false;
    }
    if (!wish.mistake) {
        const auto wished = wish.addresses.find(address.family());
        const bool pool_exists =
            std::ranges::any_of(pools_, [&](const ipam::Pool& other) { return other.name == wish.pool; });
        if ((wished != wish.addresses.end() && wished->second != address) ||
            (pool_exists && pool != nullptr && pool->name != wish.pool)) {
            return false;
        }
    }
    return std::ranges::all_of(held_, [&](const auto& other) {
        return other.first == name || std::ranges::find(other.second, address) == other.second.end() ||
               may_share(service, *services_.at(other.first));
    });
}

// Why a new address cannot be given to the Service.
std::optional<Reason> IpamModel::taken(const Name& name, const IpAddr& address) const {
    const kube::Service& service = *services_.at(name);
    const ipam::Pool& pool = *pool_with(address);
    if (pool.avoid_buggy_ips && ends_badly(address)) {
        return Reason::AddressOutsidePools;
    }
    for (const ipam::Reservation& reservation : pool.reservations) {
        if (reservation.address == address && reservation.service != name) {
            return Reason::AddressTaken;
        }
    }
    std::optional<Reason> result;
    for (const auto& [other, addresses] : held_) {
        if (other != name && std::ranges::find(addresses, address) != addresses.end() &&
            !may_share(service, *services_.at(other))) {
            const bool keys = !annotation(service, "allow-shared-ip").empty() &&
                              !annotation(*services_.at(other), "allow-shared-ip").empty();
            result = keys ? Reason::SharingRefused : Reason::AddressTaken;
        }
    }
    return result;
}

void IpamModel::order(const Name& name) {
    const Wish wish(*services_.at(name));
    std::ranges::sort(held_[name], {}, [&](const IpAddr& address) {
        return std::ranges::find(wish.families, address.family()) - wish.families.begin();
    });
}

bool IpamModel::claim(const Name& name, const std::vector<IpAddr>& addresses, bool adopts) {
    std::vector<IpAddr> granted;
    for (const IpAddr& address : addresses) {
        const ipam::Pool* pool = pool_with(address);
        if (may_keep(name, address) &&
            (!adopts || (pool != nullptr && !pool->disabled && is_permitted(*services_.at(name), *pool) &&
                         !taken(name, address)))) {
            granted.push_back(address);
        }
    }
    if (granted.empty()) {
        return false;
    }
    held_[name] = granted;
    order(name);
    return true;
}

std::optional<IpAddr> IpamModel::pick(const Name& name, const Wish& wish, const ipam::Pool& pool,
                                      IpFamily family) const {
    const auto available = [&](const IpAddr& address) { return !taken(name, address); };
    if (const auto wished = wish.addresses.find(family); wished != wish.addresses.end()) {
        const bool fits = covers(pool, wished->second) && available(wished->second);
        return fits ? std::optional(wished->second) : std::nullopt;
    }
    const std::vector<IpAddr> all = all_addresses(pool, family);
    std::set<IpAddr> reserved;
    for (const ipam::Reservation& reservation : pool.reservations) {
        reserved.insert(reservation.address);
    }
    const auto is_held = [&](const IpAddr& address) {
        return std::ranges::any_of(held_, [&](const auto& other) {
            return std::ranges::find(other.second, address) != other.second.end();
        });
    };
    const auto is_own = [&](const IpAddr& address) {
        const auto found = held_.find(name);
        return found != held_.end() && std::ranges::find(found->second, address) != found->second.end();
    };
    for (const IpAddr& address : all) {
        if (is_own(address)) {
            return address;
        }
    }
    for (const IpAddr& address : all) {
        if (reserved.contains(address) && available(address)) {  // so it is reserved for this Service
            return address;
        }
    }
    for (const IpAddr& address : all) {
        if (is_held(address) && available(address)) {
            return address;
        }
    }
    for (const IpAddr& address : all) {
        if (!is_held(address) && !reserved.contains(address) && available(address)) {
            return address;
        }
    }
    return std::nullopt;
}

IpamModel::Found IpamModel::find(const Name& name, const Wish& wish, bool only_reassign) const {
    const kube::Service& service = *services_.at(name);
    // Candidates in the order of choice.
    std::vector<const ipam::Pool*> pools;
    for (const ipam::Pool& pool : pools_) {
        pools.push_back(&pool);
    }
    const auto reserves = [&](const ipam::Pool* pool) {
        return std::ranges::any_of(pool->reservations, [&](const ipam::Reservation& reservation) {
            return reservation.service == name && wish.has(reservation.address.family());
        });
    };
    std::ranges::sort(pools, {}, [&](const ipam::Pool* pool) {
        const int64_t priority = pool->priority == 0 ? INT64_MAX : pool->priority;
        return std::tuple(!reserves(pool), !pool->is_pinned(), pool->is_pinned() ? priority : 0, pool->name);
    });
    const bool by_address = !wish.addresses.empty();
    const bool requested = by_address || !wish.pool.empty();
    if (!wish.pool.empty()) {
        std::erase_if(pools, [&](const ipam::Pool* pool) { return pool->name != wish.pool; });
        if (pools.empty()) {
            return {{}, Reason::NoPool};
        }
    }
    for (const IpFamily family : wish.families) {
        const auto wished = wish.addresses.find(family);
        if (wished == wish.addresses.end()) {
            continue;
        }
        std::erase_if(pools, [&](const ipam::Pool* pool) { return !covers(*pool, wished->second); });
        if (pools.empty()) {
            return {{}, Reason::AddressOutsidePools};
        }
    }
    std::vector<std::vector<IpFamily>> attempts = {wish.families};
    if (!wish.all) {
        attempts.emplace_back();
        for (const IpFamily family : wish.families) {
            if (by_address ? wish.addresses.contains(family) : family == wish.families.front()) {
                attempts.back().push_back(family);
            }
        }
        const auto held = held_.find(name);  // no family is lost
        if (held != held_.end() && std::ranges::any_of(held->second, [&](const IpAddr& address) {
                return std::ranges::count(attempts.back(), address.family()) == 0;
            })) {
            attempts.pop_back();
        }
    }
    // The reason of the pool that was closest: exhausted, family missing, disabled or internal, not allowed.
    std::map<int, Reason> reasons;
    for (const std::vector<IpFamily>& families : attempts) {
        reasons.clear();
        for (const ipam::Pool* pool : pools) {
            if (only_reassign && !pool->reassign) {
                continue;
            }
            if (!is_permitted(service, *pool)) {
                reasons.emplace(5, requested ? Reason::NotAllowedForNamespace : Reason::NoPool);
                continue;
            }
            if (pool->internal != asks_for_internal(service) || pool->disabled ||
                (!requested && !reserves(pool) && !pool->auto_assign)) {
                reasons.emplace(4, Reason::NoPool);
                continue;
            }
            std::vector<IpAddr> addresses;
            std::optional<std::pair<int, Reason>> failure;
            for (const auto& [family, address] : wish.addresses) {
                if (const auto why = taken(name, address)) {
                    failure.emplace(0, *why);
                    if (family == wish.families.front()) {
                        break;
                    }
                }
            }
            for (const IpFamily family : families) {
                if (failure) {
                    break;
                }
                if (!has_family(*pool, family)) {
                    failure.emplace(2, Reason::FamilyMissing);
                } else if (const auto address = pick(name, wish, *pool, family)) {
                    addresses.push_back(*address);
                } else {
                    failure.emplace(1, Reason::PoolExhausted);
                }
            }
            if (!failure) {
                return {addresses, std::nullopt};
            }
            reasons.insert(*failure);
        }
    }
    return {{}, reasons.empty() ? Reason::NoPool : reasons.begin()->second};
}

// One Service gets what it lacks. Returns whether its addresses are different now.
// LB-014: what the Service has after a pool with `reassign` has replaced what no pool covers.
std::vector<IpAddr> IpamModel::without_uncovered(const Name& name, const Wish& wish) const {
    const std::vector<IpAddr>& held = held_.at(name);
    const ipam::Pool* stays = nullptr;
    std::vector<IpAddr> result;
    for (const IpAddr& address : held) {
        if (const ipam::Pool* pool = pool_with(address)) {
            stays = pool;
            result.push_back(address);
        }
    }
    if (stays == nullptr) {
        const Found found = find(name, wish, true);
        return found.addresses.empty() ? held : found.addresses;
    }
    const kube::Service& service = *services_.at(name);
    if (!stays->reassign || stays->disabled || !is_permitted(service, *stays) ||
        stays->internal != asks_for_internal(service)) {
        return held;
    }
    for (const IpAddr& address : held) {
        if (pool_with(address) == nullptr) {
            const auto other = pick(name, wish, *stays, address.family());
            if (!other) {
                return held;
            }
            result.push_back(*other);
        }
    }
    return result;
}

bool IpamModel::improve(const Name& name) {
    const kube::Service& service = *services_.at(name);
    const Wish wish(service);
    std::vector<IpAddr>& held = held_[name];
    Outcome& outcome = outcomes_[name];
    const std::vector<IpAddr> before = held;
    outcome.refusal = wish.mistake;
    if (held.empty()) {
        const bool ours = kube::has_marker(service);
        const std::vector<IpAddr> shown = wish.shown_by(service);
        const bool leave =
            shown.empty()
                ? std::ranges::any_of(service.ingress, [](const auto& ingress) { return ingress.ip.empty(); })
                : std::ranges::any_of(shown,
                                      [&](const IpAddr& address) { return pool_with(address) == nullptr; });
        if (leave && !ours) {
            outcome.refusal = Reason::AddressOutsidePools;
        } else if (!wish.mistake) {
            Found found = find(name, wish, false);
            held = found.addresses;
            outcome.refusal = found.refusal;
        }
    }
    if (!held.empty() && !wish.mistake) {
        const bool uncovered =
            std::ranges::any_of(held, [&](const IpAddr& address) { return pool_with(address) == nullptr; });
        if (uncovered) {
            held = without_uncovered(name, wish);
        }
        for (const IpFamily family : wish.families) {
            if (std::ranges::find(held, family, &IpAddr::family) != held.end()) {
                continue;
            }
            const ipam::Pool* pool = pool_with(held.front());
            const bool open = pool != nullptr && is_permitted(service, *pool) && !pool->disabled &&
                              pool->internal == asks_for_internal(service) && has_family(*pool, family);
            if (const auto address = open ? pick(name, wish, *pool, family) : std::nullopt) {
                held.push_back(*address);
            } else if (wish.all || wish.addresses.contains(family)) {
                const Found found = find(name, wish, false);
                outcome.refusal = found.refusal;
                if (!found.refusal) {
                    held = found.addresses;
                }
            }
            break;
        }
    }
    order(name);
    return held != before;
}

void IpamModel::apply(const ipam::Changes& changes) {
    if (changes.pools) {
        pools_ = *changes.pools;
    }
    for (const auto& [name, labels] : changes.namespaces) {
        labels_[name] = labels.value_or(annotations::Labels());
    }
    std::set<Name> changed;
    for (const auto& [name, service] : changes.services) {
        const auto known = services_.find(name);
        const bool owned = service != nullptr && service->type == "LoadBalancer" &&
                           service->load_balancer_class == "penstock.io/gateway";
        const bool same = owned && known != services_.end() && known->second->meta.uid == service->meta.uid;
        if (!same) {
            held_.erase(name);
            services_.erase(name);
        } else if (ipam::request_of(*service) != ipam::request_of(*known->second)) {
            changed.insert(name);
        }
        if (owned) {
            services_[name] = service;
        }
    }
    const std::map<Name, std::vector<IpAddr>> previous = std::exchange(held_, {});
    outcomes_.clear();
    for (const bool is_changed : {false, true}) {
        for (const Name& name : by_age()) {
            if (previous.contains(name) && changed.contains(name) == is_changed) {
                claim(name, previous.at(name), false);
            }
        }
    }
    // The first Service, in the order of steps and age, that can get something gets it; then all are
    // considered again.
    for (bool improved = true; improved;) {
        improved = false;
        for (int step = 0; step < 4 && !improved; ++step) {
            for (const Name& name : by_age()) {
                const kube::Service& service = *services_.at(name);
                const Wish wish(service);
                const bool ours = kube::has_marker(service);
                if (step < 2) {
                    const std::vector<IpAddr> shown = wish.shown_by(service);
                    improved = ours == (step == 0) && held_[name].empty() && claim(name, shown, step == 1);
                } else {
                    improved = (!wish.addresses.empty() == (step == 2)) && improve(name);
                }
                if (improved) {
                    break;
                }
            }
        }
    }
    for (const auto& [name, service] : services_) {
        outcomes_[name].addresses = held_[name];
    }
}

}  // namespace penstock::test
