// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/copy_owners.hpp"

#include "dataplane/base/check.hpp"

namespace penstock::gateway {

void CopyOwners::begin_stream(CopyPeer& peer) noexcept {
    peer.stream = ++streams_;
    peer.former = peer.counts.held;
}

CopyOwners::Owner& CopyOwners::at(Slot copy) {
    std::unique_ptr<Block>& block = blocks_[copy.value / kBlock];
    if (block == nullptr) {
        block = std::make_unique<Block>();
    }
    return (*block)[copy.value % kBlock];
}

std::optional<CopyOwners::Slot> CopyOwners::find(const CopyPeer& peer, uint32_t slot) {
    for (uint32_t copy = chain(peer.stream, slot); copy != kNone; copy = at(Slot{copy}).next) {
        const Owner& of = at(Slot{copy});
        if (of.peer == &peer && of.slot == slot && of.is_current()) {
            return Slot{copy};
        }
    }
    return std::nullopt;
}

void CopyOwners::enter(Slot copy, CopyPeer& peer, uint32_t slot) {
    Owner& of = at(copy);
    PENSTOCK_ASSERT(of.peer == nullptr);
    of.peer = &peer;
    of.stream = peer.stream;
    of.slot = slot;
    uint32_t& first = chain(of.stream, slot);
    of.next = first;
    first = copy.value;
}

void CopyOwners::link(Slot copy, CopyPeer& peer, uint32_t slot, uint8_t share) {
    enter(copy, peer, slot);
    at(copy).share = share;
    ++peer.counts.held;
    ++by_share_[share];
}

void CopyOwners::wait(Slot taken, CopyPeer& peer, uint32_t slot, const conn::Connection& connection) {
    enter(taken, peer, slot);
    at(taken).waiting = std::make_unique<conn::Connection>(connection);
}

void CopyOwners::unlink(Slot copy) {
    Owner& of = at(copy);
    if (of.peer == nullptr) {
        return;
    }
    uint32_t* link = &chain(of.stream, of.slot);
    while (*link != copy.value) {
        link = &at(Slot{*link}).next;
    }
    *link = of.next;
    if (of.waiting == nullptr) {
        --of.peer->counts.held;
        of.peer->former -= of.is_current() ? 0 : 1;
        --by_share_[of.share];
    }
    of.waiting.reset();
    of.peer = nullptr;
}

void CopyOwners::move(Slot copy, uint8_t share) noexcept {
    Owner& of = at(copy);
    --by_share_[of.share];
    ++by_share_[share];
    of.share = share;
}

}  // namespace penstock::gateway
