// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/choice.hpp"

#include <algorithm>

#include "control/ipam/refusal_text.hpp"
#include "control/semantics/text.hpp"

namespace penstock::ipam {
namespace {

std::string pool_text(const Pool& pool) {
    return "pool " + semantics::quoted(pool.name);
}

std::vector<IpFamily> families_without(const std::vector<IpAddr>& addresses, const Request& request) {
    std::vector<IpFamily> missing;
    for (const IpFamily family : request.families) {
        if (std::ranges::find(addresses, family, &IpAddr::family) == addresses.end()) {
            missing.push_back(family);
        }
    }
    return missing;
}

// The Service has an address of a family that is not in `families`.
bool loses_family(const User& user, const std::vector<IpFamily>& families) {
    return std::ranges::any_of(user.addresses, [&](const IpAddr& address) {
        return std::ranges::find(families, address.family()) == families.end();
    });
}

}  // namespace

std::optional<PassedOver> Chooser::obstacle_to(Index pool, const User& user, Choice choice) const {
    return pools_.obstacle_to(pool, user.request, labels_of_(user.request.age.service.namespace_name),
                              choice);
}

std::optional<PoolTable::Index> Chooser::requested_pool(const Request& request) const {
    return pools_.find(request.pool.empty() ? request.pool_alias : request.pool);
}

std::optional<Refusal> Chooser::why_not_available(User& user, Index pool, const IpAddr& address) const {
    const std::string text = address.to_string();
    if (pools_[pool].avoid_buggy_ips && is_buggy(address)) {
        return Refusal{
            RefusalReason::AddressOutsidePools,
            text + " ends in .0 or .255, which avoidBuggyIPs of " + pool_text(pools_[pool]) + " excludes"};
    }
    const kube::ObjectName* owner = pools_.reserved_for(address);
    if (owner != nullptr && *owner != user.request.age.service) {
        return Refusal{RefusalReason::AddressTaken,
                       text + " of " + pool_text(pools_[pool]) + " is reserved for " + name_text(*owner)};
    }
    user.address_facts.push_back(address);
    for (const User* other : users_.of(address)) {
        if (other->request.age.service == user.request.age.service) {
            continue;
        }
        if (other->is_unreadable) {
            return Refusal{RefusalReason::AddressTaken,
                           text + " of " + pool_text(pools_[pool]) + " is held for " +
                               name_text(other->request.age.service) + ", whose object cannot be read"};
        }
        const SharingTerms& terms = user.request.sharing;
        if (const auto why = why_not_shared(terms, other->request.sharing)) {
            const bool taken = terms.key.empty() || other->request.sharing.key.empty();
            return Refusal{taken ? RefusalReason::AddressTaken : RefusalReason::SharingRefused,
                           text + " of " + pool_text(pools_[pool]) + " is used by " +
                               name_text(other->request.age.service) + (taken ? std::string() : ": " + *why)};
        }
    }
    return std::nullopt;
}

// The address that the Service has in this pool, otherwise a reserved one, then one that Services with the
// same key share, then the lowest free one.
std::optional<IpAddr> Chooser::pick(User& user, Index pool, IpFamily family) const {
    for (const IpAddr& address : user.addresses) {
        if (address.family() == family && pools_.containing(address) == pool) {
            return address;
        }
    }
    if (const auto* reserved = pools_.reservations_of(user.request.age.service)) {
        for (const IpAddr& address : *reserved) {
            if (address.family() == family && pools_.containing(address) == pool &&
                !why_not_available(user, pool, address)) {
                return address;
            }
        }
    }
    if (const std::string& key = user.request.sharing.key; !key.empty()) {
        user.watches_key = true;
        for (const auto& [address, count] : users_.shared_by(key)) {
            if (address.family() == family && pools_.containing(address) == pool &&
                !why_not_available(user, pool, address)) {
                return address;
            }
        }
    }
    const auto free = pools_.lowest_free(pool, family);
    user.pool_facts.push_back({.pool = pool, .family = family, .exhausted = !free});
    return free;
}

Chooser::Attempt Chooser::attempt(User& user, Index pool, const std::vector<IpFamily>& families) const {
    Attempt result;
    for (const IpFamily family : families) {
        if (!pools_.has_family(pool, family)) {
            result.failure = {Obstacle::FamilyMissing, std::string("no ") + to_string(family) + " addresses"};
            return result;
        }
        const auto& requested = user.request.addresses[index_of(family)];
        if (requested &&
            (pools_.containing(*requested) != pool || why_not_available(user, pool, *requested))) {
            result.failure = {Obstacle::Exhausted, requested->to_string() + " is not available"};
            return result;
        }
        const auto address = requested ? requested : pick(user, pool, family);
        if (!address) {
            result.failure = {Obstacle::Exhausted, std::string("no free ") + to_string(family) + " address"};
            return result;
        }
        result.addresses.push_back(*address);
    }
    return result;
}

Chooser::Decision Chooser::choose_requested(User& user) const {
    const Request& request = user.request;
    const auto refused = [](RefusalReason reason, std::string message) {
        return Decision{.addresses = {}, .refusal = Refusal{reason, std::move(message)}};
    };
    const auto named = requested_pool(request);
    if (!request.pool.empty() && !named) {
        return refused(RefusalReason::NoPool, no_such_pool_text(request.pool, pools_));
    }
    std::optional<Index> pool;
    std::optional<IpAddr> first;
    for (const IpFamily family : request.families) {
        const auto& address = request.addresses[index_of(family)];
        if (!address) {
            continue;
        }
        const auto containing = pools_.containing(*address);
        if (!containing) {
            return refused(RefusalReason::AddressOutsidePools, outside_text(*address, pools_));
        }
        if (named && containing != named) {
            return refused(RefusalReason::AddressOutsidePools,
                           address->to_string() + " is in " + pool_text(pools_[*containing]) +
                               ", not in the requested " + pool_text(pools_[*named]));
        }
        if (pool && containing != pool) {
            return refused(RefusalReason::AddressOutsidePools,
                           first->to_string() + " is in " + pool_text(pools_[*pool]) + " and " +
                               address->to_string() + " in " + pool_text(pools_[*containing]) +
                               "; both must be in one pool");
        }
        pool = containing;
        first = address;
    }
    if (const auto obstacle = obstacle_to(*pool, user, Choice::Requested)) {
        return refused(reason_of(obstacle->obstacle, Choice::Requested),
                       first->to_string() + ": " + pool_text(pools_[*pool]) + ": " + obstacle->why);
    }
    std::vector<IpFamily> requested_families;
    for (const IpFamily family : request.families) {
        if (const auto& address = request.addresses[index_of(family)]) {
            if (auto refusal = why_not_available(user, *pool, *address)) {
                return {.addresses = {}, .refusal = std::move(refusal)};
            }
            requested_families.push_back(family);
        }
    }
    Attempt all = attempt(user, *pool, request.families);
    if (all.failure && !request.requires_all && !loses_family(user, requested_families)) {
        all = attempt(user, *pool, requested_families);
    }
    if (all.failure) {
        return refused(reason_of(all.failure->obstacle, Choice::Requested),
                       pool_text(pools_[*pool]) + ": " + all.failure->why);
    }
    return {.addresses = std::move(all.addresses), .refusal = std::nullopt};
}

Chooser::Candidates Chooser::candidates(const User& user, Pools pools) const {
    Candidates result;
    const auto add = [&](Index pool, Choice choice) {
        const bool known = std::ranges::find(result, pool, &std::pair<Index, Choice>::first) != result.end();
        if (!known && (pools == Pools::All || pools_[pool].reassign)) {
            result.emplace_back(pool, choice);
        }
    };
    if (const auto named = requested_pool(user.request)) {
        add(*named, Choice::Requested);
        return result;
    }
    // Pools with an address for this Service come first.
    if (const auto* reserved = pools_.reservations_of(user.request.age.service)) {
        for (const Index pool : pools_.order()) {
            if (std::ranges::any_of(*reserved, [&](const IpAddr& address) {
                    return pools_.containing(address) == pool && user.request.has_family(address.family());
                })) {
                add(pool, Choice::Requested);
            }
        }
    }
    for (const Index pool : pools_.order()) {
        add(pool, Choice::Free);
    }
    return result;
}

Chooser::Decision Chooser::choose(User& user, Pools pools) const {
    const Request& request = user.request;
    if (request.has_addresses()) {
        Decision decision = choose_requested(user);
        if (pools == Pools::Reassigning && !decision.refusal &&
            !pools_[*pools_.containing(decision.addresses.front())].reassign) {
            decision.addresses.clear();
        }
        return decision;
    }
    if (!request.pool.empty() && !requested_pool(request)) {
        return {.addresses = {},
                .refusal = Refusal{RefusalReason::NoPool, no_such_pool_text(request.pool, pools_)}};
    }
    const Candidates found = candidates(user, pools);
    std::vector<std::pair<Index, PassedOver>> passed_over;
    for (const bool only_first : {false, true}) {
        passed_over.clear();
        const std::vector<IpFamily> families =
            only_first ? std::vector{request.families.front()} : request.families;
        for (const auto& [pool, choice] : found) {
            auto obstacle = obstacle_to(pool, user, choice);
            if (!obstacle) {
                Attempt tried = attempt(user, pool, families);
                if (!tried.failure) {
                    return {.addresses = std::move(tried.addresses), .refusal = std::nullopt};
                }
                obstacle = std::move(tried.failure);
            }
            passed_over.emplace_back(pool, *std::move(obstacle));
        }
        if (request.requires_all || loses_family(user, {request.families.front()})) {
            break;
        }
    }
    return {.addresses = {},
            .refusal = refusal_of(request, std::move(passed_over), pools_,
                                  requested_pool(request) ? Choice::Requested : Choice::Free)};
}

std::vector<IpAddr> Chooser::complete(User& user) const {
    const auto pool = pools_.containing(user.addresses.front());
    if (!pool || obstacle_to(*pool, user, Choice::Requested)) {
        return {};
    }
    return attempt(user, *pool, families_without(user.addresses, user.request)).addresses;
}

std::vector<IpAddr> Chooser::replace_uncovered(User& user) const {
    std::vector<IpFamily> families;
    std::optional<Index> covering;
    for (const IpAddr& address : user.addresses) {
        if (const auto pool = pools_.containing(address)) {
            covering = pool;
        } else {
            families.push_back(address.family());
        }
    }
    if (families.empty()) {
        return {};
    }
    if (!covering) {
        return choose(user, Pools::Reassigning).addresses;
    }
    if (!pools_[*covering].reassign || obstacle_to(*covering, user, Choice::Requested)) {
        return {};
    }
    return attempt(user, *covering, families).addresses;
}

bool Chooser::may_keep(User& user, const IpAddr& address) const {
    const Request& request = user.request;
    if (!request.has_family(address.family())) {
        return false;
    }
    const auto pool = pools_.containing(address);
    if (pool && pools_[*pool].internal != request.internal) {
        return false;
    }
    if (!request.malformed) {
        const auto& requested = request.addresses[index_of(address.family())];
        const auto named = requested_pool(request);
        if ((requested && *requested != address) || (named && pool && *named != *pool)) {
            return false;
        }
    }
    return std::ranges::none_of(users_.of(address), [&](const User* other) {
        return other != &user && !other->is_unreadable &&
               why_not_shared(request.sharing, other->request.sharing);
    });
}

bool Chooser::leaves_alone(const User& user) const {
    if (user.shown.is_ours) {
        return false;
    }
    return user.shown.addresses.empty()
               ? user.shown.has_unusable
               : std::ranges::any_of(user.shown.addresses,
                                     [&](const IpAddr& address) { return !pools_.containing(address); });
}

bool Chooser::may_adopt(User& user, const IpAddr& address) const {
    const auto pool = pools_.containing(address);
    return pool && may_keep(user, address) && !obstacle_to(*pool, user, Choice::Requested) &&
           !why_not_available(user, *pool, address);
}

}  // namespace penstock::ipam
