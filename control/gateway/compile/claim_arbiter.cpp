// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/claim_arbiter.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "control/gateway/compile/id_map.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::gateway {
namespace {

template <typename Pointer>
void remove_from(std::vector<Pointer>& list, const Pointer& gone) {
    if (const auto found = std::ranges::find(list, gone); found != list.end()) {
        *found = list.back();
        list.pop_back();
    }
}

}  // namespace

FrontendKey::FrontendKey(const model::Frontend& frontend, Protocol of)
    : node_port(frontend.cls == lb::FrontendClass::NodePort),
      family(frontend.family),
      port(frontend.port),
      protocol(of) {
    if (!node_port) {
        address = frontend.address;
    }
}

FrontendKey FrontendKey::exact(const IpAddr& address, L4Port port, Protocol protocol) {
    FrontendKey key;
    key.family = address.family();
    key.address = address;
    key.port = port;
    key.protocol = protocol;
    return key;
}

FrontendKey FrontendKey::of_node_port(IpFamily family, L4Port port, Protocol protocol) {
    FrontendKey key;
    key.node_port = true;
    key.family = family;
    key.port = port;
    key.protocol = protocol;
    return key;
}

std::string FrontendKey::to_string() const {
    const std::string where =
        node_port ? std::string(penstock::to_string(family)) + " NodePort " + std::to_string(port)
                  : address.to_string() + " port " + std::to_string(port);
    return std::string(penstock::to_string(protocol)) + " " + where;
}

size_t FrontendKeyHash::operator()(const FrontendKey& key) const noexcept {
    const size_t numbers = size_t{key.port} << 16 | size_t{static_cast<uint8_t>(key.protocol)} << 8 |
                           size_t{static_cast<uint8_t>(key.family)} << 1 | size_t{key.node_port};
    return std::hash<IpAddr>{}(key.address) ^ numbers * kHashFactor;
}

bool ClaimArbiter::ByRank::operator()(const Claimant* a, const Claimant* b) const noexcept {
    return a->was_in_force != b->was_in_force ? a->was_in_force : a->key < b->key;
}

void ClaimArbiter::begin_round() {
    for (const Claimant* better : std::exchange(newly_in_force_, {})) {
        PENSTOCK_CHECK(better->owned != nullptr);  // it is in force because its claims were granted
        for (const auto& frontend : better->owned->frontends) {
            for (Claimant* other : interest_of(FrontendKey(frontend, better->key.protocol)).wanting) {
                if (other->owned == nullptr) {
                    due_.insert(other);
                }
            }
        }
    }
}

void ClaimArbiter::want(Claimant& claimant, std::shared_ptr<const model::Service> desired) {
    want_no_longer(claimant);
    claimant.desired = std::move(desired);
    for (const auto& frontend : claimant.desired->frontends) {
        const FrontendKey claim(frontend, claimant.key.protocol);
        interests_of(claim)[claim].wanting.push_back(&claimant);
    }
    due_.insert(&claimant);
}

void ClaimArbiter::withdraw(Claimant& claimant) {
    PENSTOCK_CHECK(newly_in_force_.empty());  // begin_round() was called: the list refers to claimants
    due_.erase(&claimant);
    release_owned(claimant, Released::All);
    hold_no_longer(claimant);
    want_no_longer(claimant);
    claimant.desired = nullptr;
}

Claimant* ClaimArbiter::take_due() {
    if (due_.empty()) {
        return nullptr;
    }
    Claimant* first = *due_.begin();
    due_.erase(due_.begin());
    return first;
}

const Claimant* ClaimArbiter::better_owner(const Claimant& claimant, const FrontendKey& claim) const {
    const Claimant* owner = interest_of(claim).owner;
    return owner != nullptr && owner != &claimant && ByRank{}(owner, &claimant) ? owner : nullptr;
}

void ClaimArbiter::grant(Claimant& claimant) {
    release_owned(claimant, Released::Unwanted);
    hold_no_longer(claimant);
    claimant.owned = claimant.desired;
    for (const auto& frontend : claimant.desired->frontends) {
        const FrontendKey claim(frontend, claimant.key.protocol);
        touched_.insert(claim);
        Interest& interest = interest_of(claim);
        PENSTOCK_CHECK(interest.owner == nullptr || interest.owner == &claimant ||
                       ByRank{}(&claimant, interest.owner));
        if (std::exchange(interest.owner, &claimant) != &claimant) {
            make_due(interest, claimant);
        }
    }
}

void ClaimArbiter::refuse(Claimant& claimant, std::shared_ptr<const model::Service> in_force) {
    release_owned(claimant, Released::All);
    if (in_force != nullptr && claimant.held == nullptr) {
        hold(claimant, std::move(in_force));
    }
}

void ClaimArbiter::set_in_force(Claimant& claimant, bool is_in_force) {
    PENSTOCK_CHECK(due_.empty());  // its order depends on the ranks
    if (!std::exchange(claimant.was_in_force, is_in_force) && is_in_force) {
        newly_in_force_.push_back(&claimant);
    }
}

const Claimant* ClaimArbiter::winner(const FrontendKey& claim) const {
    const Interests& interests = interests_of(claim);
    const auto found = interests.find(claim);
    if (found == interests.end()) {
        return nullptr;
    }
    const Interest& interest = found->second;
    if (interest.owner != nullptr || interest.holding.empty()) {
        return interest.owner;
    }
    return *std::ranges::min_element(interest.holding,
                                     [](const Claimant* a, const Claimant* b) { return a->key < b->key; });
}

void ClaimArbiter::touch_node_ports() {
    for (const auto& [claim, interest] : node_ports_) {
        touched_.insert(claim);
    }
}

void ClaimArbiter::touch_exact() {
    for (const auto& [claim, interest] : exact_) {
        touched_.insert(claim);
    }
}

void ClaimArbiter::forget_touched() {
    for (const FrontendKey& claim : touched_) {
        Interests& interests = interests_of(claim);
        const auto found = interests.find(claim);
        PENSTOCK_CHECK(found != interests.end());  // interests are freed only here
        if (found->second.wanting.empty() && found->second.holding.empty() &&
            found->second.owner == nullptr) {
            interests.erase(found);
        }
    }
    touched_.clear();
}

void ClaimArbiter::want_no_longer(Claimant& claimant) {
    if (claimant.desired == nullptr) {
        return;
    }
    for (const auto& frontend : claimant.desired->frontends) {
        const FrontendKey claim(frontend, claimant.key.protocol);
        touched_.insert(claim);
        remove_from(interest_of(claim).wanting, &claimant);
    }
}

void ClaimArbiter::hold(Claimant& claimant, std::shared_ptr<const model::Service> version) {
    claimant.held = std::move(version);
    for (const auto& frontend : claimant.held->frontends) {
        const FrontendKey claim(frontend, claimant.key.protocol);
        touched_.insert(claim);
        interests_of(claim)[claim].holding.push_back(&claimant);
    }
}

void ClaimArbiter::hold_no_longer(Claimant& claimant) {
    if (claimant.held == nullptr) {
        return;
    }
    for (const auto& frontend : claimant.held->frontends) {
        const FrontendKey claim(frontend, claimant.key.protocol);
        touched_.insert(claim);
        remove_from(interest_of(claim).holding, &claimant);
    }
    claimant.held = nullptr;
}

// Gives up claims of the owned version.
void ClaimArbiter::release_owned(Claimant& claimant, Released released) {
    if (claimant.owned == nullptr) {
        return;
    }
    for (const auto& frontend : claimant.owned->frontends) {
        const FrontendKey claim(frontend, claimant.key.protocol);
        Interest& interest = interest_of(claim);
        if (interest.owner != &claimant ||
            (released == Released::Unwanted &&
             std::ranges::find(interest.wanting, &claimant) != interest.wanting.end())) {
            continue;
        }
        touched_.insert(claim);
        interest.owner = nullptr;
        make_due(interest, claimant);
    }
    claimant.owned = nullptr;
}

void ClaimArbiter::make_due(const Interest& interest, const Claimant& of) {
    for (Claimant* other : interest.wanting) {
        if (other != &of && ByRank{}(&of, other)) {
            due_.insert(other);
        }
    }
}

ClaimArbiter::Interest& ClaimArbiter::interest_of(const FrontendKey& claim) {
    return interests_of(claim).at(claim);
}

const ClaimArbiter::Interest& ClaimArbiter::interest_of(const FrontendKey& claim) const {
    return interests_of(claim).at(claim);
}

}  // namespace penstock::gateway
