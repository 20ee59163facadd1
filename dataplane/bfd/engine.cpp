// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/engine.hpp"

#include <algorithm>

namespace penstock::bfd {

RoundWatch::RoundWatch(std::span<const stats::WorkerCounters* const> workers) noexcept {
    for (const stats::WorkerCounters* worker : workers) {
        seen_[count_++].worker = worker;
    }
}

TscTicks RoundWatch::longest_silence(TscTime now) noexcept {
    TscTicks longest{};
    for (Seen& seen : std::span(seen_).first(count_)) {
        const uint64_t rounds = (*seen.worker)[stats::Counter::Polls].read();
        if (rounds != seen.rounds) {
            seen.rounds = rounds;
            seen.moved_at = now;
        }
        longest = std::max(longest, ticks_between(seen.moved_at, now));
    }
    return longest;
}

Engine::Engine(TscRate rate, uint64_t salt, std::span<const stats::WorkerCounters* const> workers) noexcept
    : rate_(rate), salt_(salt), rounds_(workers) {}

const Counts* Engine::counts(uint32_t discriminator) const noexcept {
    const auto at = std::ranges::find_if(slots_, [&](const Slot& slot) {
        return slot.discriminator.load(std::memory_order_acquire) == discriminator;
    });
    return discriminator == 0 || at == slots_.end() ? nullptr : &at->counts;
}

Engine::Slot* Engine::find(uint32_t discriminator) noexcept {
    const auto at = std::ranges::find_if(slots_, [&](const Slot& slot) {
        return slot.discriminator.load(std::memory_order_relaxed) == discriminator;
    });
    return at == slots_.end() ? nullptr : &*at;
}

// By the discriminator that the peer has learned, else by the addresses. In both cases the packet must come
// from the session's peer (RFC 5880, 6.3; RFC 5881, 3).
Engine::Slot* Engine::find(const ControlPacket& packet, const Origin& origin) noexcept {
    const auto at = std::ranges::find_if(slots_, [&](const Slot& slot) {
        const uint32_t own = slot.discriminator.load(std::memory_order_relaxed);
        const Terms& terms = slot.session.terms();
        return own != 0 && (packet.your_discriminator == 0 || packet.your_discriminator == own) &&
               terms.peer == origin.source && terms.local == origin.destination &&
               terms.is_multihop() == origin.is_multihop &&
               (origin.is_multihop || terms.egress == origin.port);
    });
    return at == slots_.end() ? nullptr : &*at;
}

bool Engine::receive(const ControlPacket& packet, const Origin& origin, TscTime now) noexcept {
    Slot* const slot = find(packet, origin);
    if (slot == nullptr || origin.ttl < slot->session.terms().ttl_min) {
        return false;
    }
    slot->counts.received.add(1);
    slot->counts.received_bytes.add(kControlPacketBytes);
    slot->session.receive(packet, now);
    wakes_at_ = std::min(wakes_at_, slot->session.wakes_at());
    return true;
}

void Engine::take_orders(TscTime now) noexcept {
    while (const auto order = orders_.pop()) {
        if (order->kind == Order::Kind::Put) {
            put(*order, now);
        } else if (Slot* const slot = find(order->terms.discriminator); slot != nullptr) {
            Terms last = slot->session.terms();
            last.is_shut_down = true;
            slot->session.change(last, now);
            slot->ends = true;
        }
    }
}

// A routing daemon that has restarted names its sessions anew. They continue under their new names.
void Engine::put(const Order& order, TscTime now) noexcept {
    const Terms& terms = order.terms;
    Slot* slot = find(terms.discriminator);
    if (slot == nullptr) {
        const auto same = std::ranges::find_if(slots_, [&](const Slot& each) {
            return each.discriminator.load(std::memory_order_relaxed) != 0 &&
                   each.session.terms().is_same_session(terms);
        });
        slot = same == slots_.end() ? nullptr : &*same;
    }
    if (slot != nullptr && slot->session.terms().is_same_session(terms)) {
        slot->session.change(terms, now);
        slot->ends = false;
        slot->is_reported = slot->discriminator.load(std::memory_order_relaxed) == terms.discriminator;
        slot->discriminator.store(terms.discriminator, std::memory_order_release);
        return;
    }
    if (slot == nullptr) {  // otherwise another session had this name
        slot = find(0);
    }
    if (slot == nullptr) {
        return;  // the control plane counts the sessions
    }
    slot->session = Session(terms, rate_, salt_, now);
    if (order.former.remote_discriminator != 0 && !terms.is_shut_down) {
        slot->session.resume(order.former, now);
    }
    slot->is_reported = slot->ends = false;
    slot->counts.received.set(0);
    slot->counts.received_bytes.set(0);
    slot->counts.sent.set(0);
    slot->counts.sent_bytes.set(0);
    slot->counts.withheld.set(0);
    slot->counts.unsendable.set(0);
    slot->discriminator.store(terms.discriminator, std::memory_order_release);
}

void Engine::report(Slot& slot) noexcept {
    // Poll and final bits are the concern of the session alone.
    Status status = slot.session.status();
    status.remote.poll = status.remote.final = false;
    if (slot.is_reported && slot.reported == status) {
        return;
    }
    const uint32_t discriminator = slot.discriminator.load(std::memory_order_relaxed);
    slot.is_reported = changes_.push({.discriminator = discriminator, .status = status});
    slot.reported = status;
}

bool Engine::may_send(const Session& session, TscTime now) noexcept {
    const uint64_t interval_us = session.transmit_interval_us();
    const TscTicks limit{2 * interval_us * (rate_.hz / 1'000) / 1'000};
    return !withheld_.load(std::memory_order_relaxed) && rounds_.longest_silence(now) <= limit;
}

}  // namespace penstock::bfd
