// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/copy_book.hpp"

#include <algorithm>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::gateway {
namespace {

// Part of the store that must be free before refused copies are requested again.
constexpr uint32_t kRoomDivisor = 16;

}  // namespace

CopyBook::Peer& CopyBook::peer(const std::string& gateway) {
    return peers_[gateway];
}

CopyBook::Owner& CopyBook::owner(Slot slot) {
    if (slot.value >= owners_.size()) {
        owners_.resize(std::max<size_t>(slot.value + size_t{1}, store_.slots()));
    }
    return owners_[slot.value];
}

void CopyBook::set_plan(std::shared_ptr<const GatewayShares> own) {
    own_ = std::move(own);
    const shares::Plan& plan = own_->plan();
    for (auto& [gateway, peer] : peers_) {
        peer.shares = plan.common_shares(own_->gateway_name(), gateway);
    }
    for (const shares::Gateway& gateway : plan.gateways) {
        peer(gateway.name).shares = plan.common_shares(own_->gateway_name(), gateway.name);
    }
    store_.for_each([&](Slot copy) {
        Owner& of = owner(copy);
        if (of.peer == nullptr) {
            return;
        }
        const uint8_t share = own_->share_of(store_.at(copy).forward.destination);
        --by_share_[of.share];
        ++by_share_[share];
        of.share = share;
        if ((of.peer->shares >> share & 1) == 0) {
            drop(copy);
        }
    });
}

void CopyBook::begin_stream(const std::string& gateway) {
    Peer& of = peer(gateway);
    ++of.stream;
    of.had_pass = false;
    of.is_partial = false;
}

void CopyBook::apply(const std::string& gateway, std::span<const copies::Record> records) {
    Peer& of = peer(gateway);
    of.counts.received += records.size();
    for (const copies::Record& record : records) {
        if (record.kind == copies::Record::Kind::Held) {
            hold(of, record.slot, record.connection);
        } else if (const auto held = of.slots.find(record.slot); held != of.slots.end()) {
            drop(held->second);
        }
    }
}

void CopyBook::hold(Peer& peer, uint32_t slot, const conn::Connection& connection) {
    const uint8_t share = own_->share_of(connection.forward.destination);
    const auto held = peer.slots.find(slot);
    if ((peer.shares >> share & 1) == 0) {
        ++peer.counts.foreign;
        if (held != peer.slots.end()) {
            drop(held->second);  // the other gateway has another connection in this slot
        }
        return;
    }
    if (held != peer.slots.end()) {
        const Slot copy = held->second;
        if (store_.refresh(copy, connection)) {
            owner(copy).stream = peer.stream;
            return;
        }
        drop(copy);
    }
    Slot copy = store_.put(connection);
    if (!copy.is_set() && !make_room(peer, connection)) {
        ++peer.counts.taken;
        return;
    }
    if (!copy.is_set()) {
        copy = store_.put(connection);
    }
    if (!copy.is_set()) {
        ++peer.counts.full;
        peer.is_partial = true;
        return;
    }
    link(peer, slot, copy, share);
}

// A copy with one of the keys is older: its gateway reports ends in the order in which it reads its tables.
// Of the copies of two gateways, the one that a packet has used last is the connection's.
bool CopyBook::make_room(Peer& peer, const conn::Connection& connection) {
    for (const packet::FlowKey& key : {connection.forward, connection.reverse}) {
        const auto found = store_.find(key);
        if (!found) {
            continue;
        }
        const Owner& of = owner(found->slot);
        const bool is_newer = units_between(connection.last_seen, found->connection.last_seen) > 0;
        if (found->is_taken || (of.peer != &peer && is_newer)) {
            return false;
        }
        drop(found->slot);
        if (store_.is_taken(found->slot)) {
            return false;  // meanwhile
        }
    }
    return true;
}

void CopyBook::link(Peer& peer, uint32_t slot, Slot copy, uint8_t share) {
    owner(copy) = {.peer = &peer, .slot = slot, .stream = peer.stream, .share = share, .searches = 0};
    peer.slots[slot] = copy;
    ++peer.counts.held;
    ++by_share_[share];
}

void CopyBook::unlink(Slot copy) {
    Owner& of = owner(copy);
    if (of.peer == nullptr) {
        return;
    }
    PENSTOCK_ASSERT(of.peer->slots.at(of.slot) == copy);
    of.peer->slots.erase(of.slot);
    --of.peer->counts.held;
    --by_share_[of.share];
    of.peer = nullptr;
}

void CopyBook::drop(Slot copy) {
    unlink(copy);
    if (!store_.is_taken(copy)) {
        store_.remove(copy);
        owner(copy).searches = 0;
    }
}

void CopyBook::end_pass(const std::string& gateway) {
    Peer& of = peer(gateway);
    if (std::exchange(of.had_pass, true)) {
        return;
    }
    std::vector<Slot> stale;
    for (const auto& [slot, copy] : of.slots) {
        if (owner(copy).stream != of.stream) {
            stale.push_back(copy);
        }
    }
    std::ranges::for_each(stale, [&](Slot copy) { drop(copy); });
}

void CopyBook::sweep(uint32_t units, const Sweep& by) {
    constexpr uint8_t kSearches = 2;
    if (cursor_ >= store_.slots()) {
        cursor_ = 0;
        taken_ = std::exchange(taken_so_far_, 0);
    }
    store_.for_each(cursor_, units, [&](Slot slot) {
        const conn::Connection copy = store_.at(slot);
        if (!store_.is_taken(slot)) {
            if (units_between(copy.last_seen, by.now) > by.limit_of(copy)) {
                drop(slot);
            } else {
                store_.forget_refusal(slot);
            }
            return;
        }
        unlink(slot);
        Owner& of = owner(slot);
        of.searches = by.lives(copy) ? 0 : static_cast<uint8_t>(of.searches + 1);
        if (of.searches == kSearches) {
            store_.remove(slot);
            of.searches = 0;
        } else {
            ++taken_so_far_;
        }
    });
    cursor_ += units;
}

CopyBook::Counts CopyBook::counts(const std::string& gateway) const {
    const auto found = peers_.find(gateway);
    return found == peers_.end() ? Counts{} : found->second.counts;
}

bool CopyBook::is_partial(const std::string& gateway) const {
    const auto found = peers_.find(gateway);
    return found != peers_.end() && found->second.is_partial;
}

bool CopyBook::has_room() const noexcept {
    return store_.units_used() <= store_.capacity() - store_.capacity() / kRoomDivisor;
}

}  // namespace penstock::gateway
