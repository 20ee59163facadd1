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
    is_reviewed_ = store_.slots() == 0;
}

bool CopyBook::review(uint32_t& from) {
    store_.for_each(from, kPortion, [&](Slot copy) {
        const Owner& of = owners_.at(copy);
        if (of.peer == nullptr || of.waiting != nullptr) {
            return;
        }
        const packet::FlowKey forward = store_.at(copy).forward;
        owners_.move(copy, own_->share_of(forward.destination, forward.source));
        if ((of.peer->shares >> of.share & 1) == 0) {
            drop(copy);
        }
    });
    from += kPortion;
    is_reviewed_ = from >= store_.slots();
    return !is_reviewed_;
}

void CopyBook::begin_stream(const std::string& gateway) {
    Peer& of = peer(gateway);
    of.is_partial = false;
    owners_.begin_stream(of);
}

void CopyBook::apply(const std::string& gateway, std::span<const copies::Record> records) {
    Peer& of = peer(gateway);
    of.counts.received += records.size();
    for (const copies::Record& record : records) {
        if (record.kind == copies::Record::Kind::Held) {
            hold(of, record.slot, record.connection);
        } else if (const auto held = owners_.find(of, record.slot)) {
            drop(*held);
        }
    }
}

// A connection is of the share of its VIP, whatever share its SNAT address is of: the worker that takes the
// copy over examines the address (prepare_copy()), and a gateway that gets its connection back may use it.
void CopyBook::hold(Peer& peer, uint32_t slot, const conn::Connection& connection) {
    const uint8_t share = own_->share_of(connection.forward.destination, connection.forward.source);
    const auto held = owners_.find(peer, slot);
    if ((peer.shares >> share & 1) == 0) {
        ++peer.counts.foreign;
        if (held) {
            drop(*held);  // the other gateway has another connection in this slot
        }
        return;
    }
    if (held) {
        if (store_.refresh(*held, connection)) {
            return;
        }
        drop(*held);
    }
    if (peer.former > 0 && renew_former(peer, slot, connection, share)) {
        return;
    }
    blocked_by_ = {};
    if (const Slot copy = put(peer, peer, connection); copy.is_set()) {
        owners_.link(copy, peer, slot, share);
    } else if (blocked_by_.is_set()) {
        owners_.unlink(blocked_by_);  // one connection waits for each taken copy
        owners_.wait(blocked_by_, peer, slot, connection);
    }
}

// True: a copy of a former stream is one of this stream from now on.
bool CopyBook::renew_former(Peer& peer, uint32_t slot, const conn::Connection& connection, uint8_t share) {
    const auto found = store_.find(connection.forward);
    if (!found || owners_.at(found->slot).peer != &peer || !store_.refresh(found->slot, connection)) {
        return false;
    }
    owners_.unlink(found->slot);
    owners_.link(found->slot, peer, slot, share);
    return true;
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
                owners_.link(copy, own_copies_, copy.value, share);
            }
        }
    }
}

bool CopyBook::give_back(const std::string& gateway, uint32_t& from, CoarseTime now, const CoarseClock& clock,
                         std::vector<std::byte>& out) {
    static_assert(kPortion <= copies::Sweep::kStepUnitsMax);  // their records are one batch
    const Peer& of = peer(gateway);
    store_.for_each(from, kPortion, [&](Slot copy) {
        if (owners_.at(copy).peer == &of && !store_.is_taken(copy)) {
            copies::append_held(out, copy.value, store_.at(copy), now, clock);
        }
    });
    from += kPortion;
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
        const Owner& of = owners_.at(found->slot);
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

void CopyBook::drop(Slot copy) {
    owners_.unlink(copy);
    if (!store_.is_taken(copy)) {
        store_.remove(copy);
        owners_.at(copy).searches = 0;
    }
}

bool CopyBook::end_pass(const std::string& gateway, uint32_t& from) {
    const Peer& of = peer(gateway);
    if (of.former == 0) {
        return false;
    }
    store_.for_each(from, kPortion, [&](Slot copy) {
        const Owner& owner = owners_.at(copy);
        if (owner.peer == &of && !owner.is_current()) {
            drop(copy);
        }
    });
    from += kPortion;
    PENSTOCK_ASSERT(of.former == 0 || from < store_.slots());
    return of.former > 0;
}

void CopyBook::sweep(uint32_t units, const Sweep& by) {
    if (!is_reviewed_) {
        return;
    }
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
    const Owner& of = owners_.at(slot);
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
    Owner& of = owners_.at(slot);
    if (of.waiting == nullptr || !of.is_current()) {
        owners_.unlink(slot);
    }
    of.searches = by.lives(copy) ? 0 : static_cast<uint8_t>(of.searches + 1);
    if (of.searches == kSearches) {
        return replace_taken(slot);
    }
    ++taken_so_far_;
    if (of.waiting == nullptr) {
        return;
    }
    const auto own = by.own_of(of.waiting->forward);
    // The taken copy may have only the reverse key in common with the waiting one. Then its connection lives.
    if (own && supersedes(*of.waiting, own->connection, by.margin) && store_.order_end(*own) &&
        copy.forward == of.waiting->forward) {
        --taken_so_far_;
        replace_taken(slot);
    }
}

void CopyBook::replace_taken(Slot slot) {
    Owner& of = owners_.at(slot);
    Peer* const peer = of.peer;
    const uint32_t waiting_slot = of.slot;
    const auto waiting = of.waiting == nullptr ? std::nullopt : std::optional(*of.waiting);
    of.searches = 0;
    owners_.unlink(slot);
    store_.remove(slot);
    if (waiting) {
        hold(*peer, waiting_slot, *waiting);
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
