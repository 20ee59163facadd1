// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/copy_book.hpp"

#include <algorithm>
#include <utility>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/copies/sweep.hpp"

namespace penstock::gateway {
namespace {

// Part of the store that must be free before refused copies are requested again.
constexpr uint32_t kRoomDivisor = 16;

// Both sides have sent packets, so no other host has forged the first one.
bool is_answered(const conn::Connection& connection) noexcept {
    switch (connection.forward.protocol) {
        case Protocol::Tcp:
            return conn::is_open(connection.tcp_state()) &&
                   connection.tcp_state() != conn::TcpState::SynSent &&
                   connection.tcp_state() != conn::TcpState::SynReceived &&
                   connection.tcp_state() != conn::TcpState::PickedUp;
        case Protocol::Udp:
            return connection.datagram_state() == conn::DatagramState::TwoWay;
        case Protocol::Sctp:
            return conn::is_open(connection.sctp_state()) && !conn::is_opening(connection.sctp_state());
    }
    return false;
}

}  // namespace

bool supersedes(const conn::Connection& copy, const conn::Connection& own, int32_t margin) noexcept {
    if (copy.forward != own.forward || units_between(own.last_seen, copy.last_seen) <= margin) {
        return false;
    }
    return copy.reverse == own.reverse ||
           (units_between(own.opened_at, copy.opened_at) > 0 && is_answered(copy));
}

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
    own_copies_.shares = 0;
    for (size_t share = 0; share < plan.shares.size(); ++share) {
        const bool has_role = own_->part_in(static_cast<uint8_t>(share)).role != shares::Role::None;
        own_copies_.shares |= uint64_t{has_role} << share;
    }
    store_.for_each([&](Slot copy) {
        Owner& of = owner(copy);
        if (of.peer == nullptr) {
            return;
        }
        const packet::FlowKey forward = store_.at(copy).forward;
        const uint8_t share = own_->share_of(forward.destination, forward.source);
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
    of.had_pass = false;
    of.is_partial = false;
    of.waiting.clear();
    for (const auto& [slot, copy] : std::exchange(of.slots, {})) {
        of.former.insert(copy.value);
    }
}

void CopyBook::apply(const std::string& gateway, std::span<const copies::Record> records) {
    Peer& of = peer(gateway);
    of.counts.received += records.size();
    for (const copies::Record& record : records) {
        if (record.kind == copies::Record::Kind::Held) {
            hold(of, record.slot, record.connection);
            continue;
        }
        forget_waiting(of, record.slot);
        if (const auto held = of.slots.find(record.slot); held != of.slots.end()) {
            drop(held->second);
        }
    }
}

void CopyBook::hold(Peer& peer, uint32_t slot, const conn::Connection& connection) {
    const uint8_t share = own_->share_of(connection.forward.destination, connection.forward.source);
    const auto held = peer.slots.find(slot);
    forget_waiting(peer, slot);
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
            return;
        }
        drop(copy);
    }
    if (!peer.former.empty() && renew_former(peer, slot, connection, share)) {
        return;
    }
    blocked_by_ = {};
    if (const Slot copy = put(peer, peer, connection); copy.is_set()) {
        link(peer, slot, copy, share);
    } else if (blocked_by_.is_set()) {
        Owner& of = owner(blocked_by_);
        if (of.waiting_peer != nullptr) {
            forget_waiting(*of.waiting_peer, of.waiting_slot);  // one for each taken copy
        }
        peer.waiting.insert_or_assign(slot, connection);
        of.waiting_peer = &peer;
        of.waiting_slot = slot;
    }
}

// True: a copy of a former stream is one of this stream from now on.
bool CopyBook::renew_former(Peer& peer, uint32_t slot, const conn::Connection& connection, uint8_t share) {
    const auto found = store_.find(connection.forward);
    if (!found || owner(found->slot).peer != &peer || !store_.refresh(found->slot, connection)) {
        return false;
    }
    unlink(found->slot);
    link(peer, slot, found->slot, share);
    return true;
}

void CopyBook::forget_waiting(Peer& peer, uint32_t slot) {
    peer.waiting.erase(slot);
}

CopyBook::Slot CopyBook::put(Peer& holder, Peer& from, const conn::Connection& connection) {
    const auto origin = &holder == &own_copies_ ? copies::Store::Origin::Own : copies::Store::Origin::Other;
    Slot copy = store_.put(connection, origin);
    if (copy.is_set()) {
        return copy;
    }
    if (!make_room(holder, connection)) {
        ++from.counts.taken;
        return copy;
    }
    copy = store_.put(connection, origin);
    if (!copy.is_set()) {
        ++from.counts.full;
        from.is_partial = true;
    }
    return copy;
}

void CopyBook::take_back(const std::string& gateway, std::span<const copies::Record> records,
                         const std::function<bool(const conn::Connection&)>& is_in_table) {
    Peer& from = peer(gateway);
    from.counts.received += records.size();
    for (const copies::Record& record : records) {
        const conn::Connection& connection = record.connection;
        const uint8_t share = own_->share_of(connection.forward.destination, connection.forward.source);
        if (record.kind != copies::Record::Kind::Held || (from.shares >> share & 1) == 0) {
            ++from.counts.foreign;
        } else if (!is_in_table(connection)) {  // otherwise it was adopted, or its tuple is used again
            if (const Slot copy = put(own_copies_, from, connection); copy.is_set()) {
                link(own_copies_, copy.value, copy, share);
            }
        }
    }
}

bool CopyBook::give_back(const std::string& gateway, uint32_t& from, CoarseTime now, const CoarseClock& clock,
                         std::vector<std::byte>& out) {
    constexpr uint32_t kUnits = copies::Sweep::kStepUnitsMax;
    const Peer& of = peer(gateway);
    store_.for_each(from, kUnits, [&](Slot copy) {
        if (owner(copy).peer == &of && !store_.is_taken(copy)) {
            copies::append_held(out, copy.value, store_.at(copy), now, clock);
        }
    });
    from += kUnits;
    return from < store_.slots();
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
        const bool held_is_later = units_between(connection.last_seen, found->connection.last_seen) > 0;
        if (!found->is_taken) {
            if (of.peer != &peer && held_is_later) {
                return false;
            }
            drop(found->slot);
        }
        if (found->is_taken || store_.is_taken(found->slot)) {  // or meanwhile
            blocked_by_ = found->slot;
            return false;
        }
    }
    return true;
}

void CopyBook::link(Peer& peer, uint32_t slot, Slot copy, uint8_t share) {
    owner(copy) = {.peer = &peer, .slot = slot, .share = share};
    peer.slots[slot] = copy;
    ++peer.counts.held;
    ++by_share_[share];
}

void CopyBook::unlink(Slot copy) {
    Owner& of = owner(copy);
    if (of.peer == nullptr) {
        return;
    }
    if (of.peer->former.erase(copy.value) == 0) {
        PENSTOCK_ASSERT(of.peer->slots.at(of.slot) == copy);
        of.peer->slots.erase(of.slot);
    }
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
    const std::vector<uint32_t> stale(of.former.begin(), of.former.end());
    std::ranges::for_each(stale, [&](uint32_t copy) { drop(Slot{copy}); });
}

void CopyBook::sweep(uint32_t units, const Sweep& by) {
    if (cursor_ >= store_.slots()) {
        cursor_ = 0;
        taken_ = std::exchange(taken_so_far_, 0);
    }
    store_.for_each(cursor_, units, [&](Slot slot) {
        const conn::Connection copy = store_.at(slot);
        store_.is_taken(slot) ? examine_taken(slot, copy, by) : examine_held(slot, copy, by);
    });
    cursor_ += units;
}

void CopyBook::examine_held(Slot slot, const conn::Connection& copy, const Sweep& by) {
    if (units_between(copy.last_seen, by.now) > by.limit_of(copy)) {
        return drop(slot);
    }
    store_.forget_refusal(slot);
    const Owner& of = owner(slot);
    const bool is_own = of.peer == &own_copies_;
    // A search reads each worker's table, and an heir that has no connections of its own needs none.
    const bool is_hidden_perhaps =
        is_own || by.may_serve_as_heir || own_->part_in(of.share).role == shares::Role::Primary;
    if (!is_hidden_perhaps) {
        return;
    }
    const auto own = by.own_of(copy.forward);
    if (!own) {
        return;
    }
    if (is_own) {
        if (own->connection.reverse != copy.reverse) {  // otherwise a worker is taking it over
            drop(slot);                                 // the client has used the tuple again
        }
    } else if (supersedes(copy, own->connection, by.margin)) {
        store_.order_end(*own);  // or with the next sweep
    }
}

void CopyBook::examine_taken(Slot slot, const conn::Connection& copy, const Sweep& by) {
    constexpr uint8_t kSearches = 2;
    unlink(slot);
    Owner& of = owner(slot);
    of.searches = by.lives(copy) ? 0 : static_cast<uint8_t>(of.searches + 1);
    if (of.searches == kSearches) {
        return replace_taken(slot);
    }
    ++taken_so_far_;
    if (of.waiting_peer == nullptr) {
        return;
    }
    const auto waiting = of.waiting_peer->waiting.find(of.waiting_slot);
    if (waiting == of.waiting_peer->waiting.end()) {
        of.waiting_peer = nullptr;
        return;
    }
    const auto own = by.own_of(waiting->second.forward);
    // The taken copy may have only the reverse key in common with the waiting one. Then its connection lives.
    if (own && supersedes(waiting->second, own->connection, by.margin) && store_.order_end(*own) &&
        copy.forward == waiting->second.forward) {
        --taken_so_far_;
        replace_taken(slot);
    }
}

void CopyBook::replace_taken(Slot slot) {
    Owner& of = owner(slot);
    Peer* const peer = std::exchange(of.waiting_peer, nullptr);
    const uint32_t waiting_slot = of.waiting_slot;
    of.searches = 0;
    store_.remove(slot);
    if (peer == nullptr) {
        return;
    }
    if (const auto waiting = peer->waiting.find(waiting_slot); waiting != peer->waiting.end()) {
        const conn::Connection connection = waiting->second;
        hold(*peer, waiting_slot, connection);
    }
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
