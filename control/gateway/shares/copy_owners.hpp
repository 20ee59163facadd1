// SPDX-License-Identifier: Apache-2.0
// The owner of each copy: the gateway that sends it, and the slot that the copy has in a stream of this
// gateway. Also finds the copy of a slot.
//
// The chains of the index are links between the owners, and a slot of a former stream is another one than the
// same slot of the current stream. So a stream begins, and a copy comes and goes, in a time that does not
// depend on the number of copies. No call moves more than one owner, and gateways that begin streams again
// and again take no memory: there is one owner for each slot of the store.
//
// Pure. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/conn/connection.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/shares/share_map.hpp"

namespace penstock::gateway {

// Of one other gateway.
struct CopyCounts {
    uint64_t held = 0;      // copies now, those that workers have taken over excluded
    uint64_t received = 0;  // records, as are the next three
    uint64_t foreign = 0;   // refused: no role in common in the share of the VIP
    uint64_t full = 0;      // refused: the store has no room
    uint64_t taken = 0;     // refused: a worker, or a later copy of another gateway, has a key
};

struct CopyPeer {
    uint64_t shares = 0;      // in common with this gateway, as bits
    bool is_partial = false;  // the stream has been refused copies for want of room
    uint32_t stream = 0;      // the number of the current one
    // Copies of former streams that the current one has not repeated. Another process may have sent them,
    // with another meaning of its slots.
    uint64_t former = 0;
    CopyCounts counts;
};

class CopyOwners {
 public:
    using Slot = copies::Store::Slot;
    struct Owner {
        CopyPeer* peer = nullptr;  // null: none
        uint32_t stream = 0;       // of the peer
        uint32_t slot = 0;         // in this stream; of an own copy: in the store
        uint32_t next = kNone;     // in the chain of the index
        uint8_t share = 0;
        uint8_t searches = 0;  // in a row that have not found the connection of a taken copy
        // Of a taken copy: the connection of `slot` waits for its end. Otherwise null.
        std::unique_ptr<conn::Connection> waiting;

        // The peer has sent the copy, or the connection that waits, in its current stream.
        [[nodiscard]] bool is_current() const noexcept { return stream == peer->stream; }
    };

    // `capacity`: of the store.
    explicit CopyOwners(uint32_t capacity)
        : blocks_(size_t{capacity} / kBlock + 1), chains_(size_t{capacity} + 1, kNone) {}

    // The peer's slots mean other connections from now on. Its copies stay, as those of a former stream.
    void begin_stream(CopyPeer& peer) noexcept;

    [[nodiscard]] Owner& at(Slot copy);
    // The copy of this slot of the current stream, or the taken copy that it waits for to end.
    [[nodiscard]] std::optional<Slot> find(const CopyPeer& peer, uint32_t slot);
    // The copy, which has no owner, is of this slot of the peer's current stream.
    void link(Slot copy, CopyPeer& peer, uint32_t slot, uint8_t share);
    // The connection of the slot waits for the end of the copy, which has no owner.
    void wait(Slot taken, CopyPeer& peer, uint32_t slot, const conn::Connection& connection);
    // The copy has no owner from now on, and nothing waits for its end.
    void unlink(Slot copy);
    // The copy, which has an owner, is of this share by a new plan.
    void move(Slot copy, uint8_t share) noexcept;

    // Copies with an owner by share, those that workers have taken over excluded.
    [[nodiscard]] uint64_t held_in(uint8_t share) const noexcept { return by_share_[share]; }

 private:
    static constexpr uint32_t kNone = UINT32_MAX;
    // Owners are allocated when their slots are first used, this number at once: tens of microseconds.
    static constexpr uint32_t kBlock = 4'096;
    using Block = std::array<Owner, kBlock>;

    // The first copy of the chain with this slot. Slots of a stream that follow each other are in chains that
    // do: a stream sends them in this order.
    [[nodiscard]] uint32_t& chain(uint32_t stream, uint32_t slot) noexcept {
        return chains_[(slot + uint64_t{stream} * 0x9e37'79b1U) % chains_.size()];
    }
    void enter(Slot copy, CopyPeer& peer, uint32_t slot);

    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<uint32_t> chains_;
    std::array<uint64_t, shares::kSharesMax> by_share_{};
    uint32_t streams_ = 0;  // numbers given, of all peers
};

}  // namespace penstock::gateway
