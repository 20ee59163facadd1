// SPDX-License-Identifier: Apache-2.0
// The copies that this gateway holds of the connections of other gateways (docs/adr/0050): applies records of
// their streams to copies::Store. Nothing else puts or removes copies. Workers mark
// them as taken over or refused.
//
// A copy belongs to the gateway that sent it last, and to the slot that it has there. It stays when a stream
// is lost: that is when it is needed. It leaves
// - when the other gateway reports its end,
// - when a later stream has been complete once without it,
// - when it is idle past the limit of its state,
// - when a newer plan gives the two gateways no role in its share.
// A copy that a worker has taken over leaves only when no table has the connection any more.
//
// A gateway that starts anew gets back what another one holds of its connections. These copies are its own:
// no stream ends them. They leave when they are idle, and when another connection has one of their keys.
//
// Pure, except for the store. One thread at a time: the caller holds a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/gateway/shares/copy_owners.hpp"
#include "control/gateway/shares/gateway_shares.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/copies/record.hpp"
#include "dataplane/copies/store.hpp"

namespace penstock::gateway {

// Whether the connection `own` of this gateway is not needed any more, because another gateway has `copy`,
// with the same forward key: the same connection, whose packets pass there, or a later one of the same
// client, which has been answered there. Packets of `own` would have renewed it: see Sweep::margin.
[[nodiscard]] bool supersedes(const conn::Connection& copy, const conn::Connection& own,
                              int32_t margin) noexcept;

class CopyBook {
 public:
    using Counts = CopyCounts;
    // Slots of the store that one call examines, and records that one call applies, at most: each in 1 to
    // 2 ms (scripts/bench shares). The caller unlocks the book between two calls.
    static constexpr uint32_t kPortion = 4'096;
    static constexpr size_t kRecordsAtOnce = 1'024;

    // `store` must outlive the book, and be empty.
    explicit CopyBook(copies::Store& store) : store_(store), owners_(store.capacity()) {}

    // Records follow the plan from now on. Call before the first stream, and review() afterwards.
    void set_plan(std::shared_ptr<const GatewayShares> own);
    // Removes the copies that the plan no longer allows: those of some slots, from `from` on, which is moved.
    // False: there are no more slots.
    bool review(uint32_t& from);

    // A stream of the gateway begins, which sends all of its connections again. Ends a former stream. Takes
    // the same time for any number of copies.
    void begin_stream(const std::string& gateway);
    // Records of its stream, in the order of arrival.
    void apply(const std::string& gateway, std::span<const copies::Record> records);
    // This gateway's own connections, as the other one has held them since before this process started.
    // `is_in_table`: whether a worker has a connection with one of its keys.
    void take_back(const std::string& gateway, std::span<const copies::Record> records,
                   const std::function<bool(const conn::Connection&)>& is_in_table);
    // What the store holds of the gateway's connections, apart from those that workers have taken over:
    // appends Held records of some slots, from `from` on, which is moved. At most kBatchBytesMax. False:
    // there are no more slots.
    bool give_back(const std::string& gateway, uint32_t& from, CoarseTime now, const CoarseClock& clock,
                   std::vector<std::byte>& out);
    // The stream has sent all connections once more. Removes the copies of former streams that this one has
    // not repeated: those of some slots, from `from` on, which is moved. False: none is left.
    bool end_pass(const std::string& gateway, uint32_t& from);

    struct Sweep {
        CoarseTime now;
        // The time, in units of CoarseTime, after which an idle copy ends.
        std::function<int32_t(const conn::Connection&)> limit_of;
        // Whether a worker has the connection of a copy that was taken over.
        std::function<bool(const conn::Connection&)> lives;
        // The connection of a worker with this forward key.
        std::function<std::optional<copies::OwnConnection>(const packet::FlowKey&)> own_of =
            [](const packet::FlowKey&) { return std::nullopt; };
        // This gateway may have connections of shares of which it is the heir.
        bool may_serve_as_heir = true;
        // In units of CoarseTime: a connection here is superseded if the copy's last packet is later than its
        // own last packet by more than this. Exceeds what times lose on their way.
        int32_t margin = 0;
    };
    // Examines the next `units` slots of the store. Removes copies that are idle past their limit, and those
    // that were taken over and whose connection has not been found twice in a row: a search
    // may fail while the entry moves. Ends connections of this gateway that hide a copy (supersedes()). Does
    // nothing between set_plan() and the end of review().
    void sweep(uint32_t units, const Sweep& by);
    // Copies that workers have taken over, as of the last sweep of the whole store.
    [[nodiscard]] uint64_t taken() const noexcept { return taken_; }

    [[nodiscard]] Counts counts(const std::string& gateway) const;
    // Copies held by share: those of Counts::held, and own ones.
    [[nodiscard]] uint64_t held_in(uint8_t share) const noexcept { return owners_.held_in(share); }
    // The store has refused copies of the current stream of the gateway for want of room.
    [[nodiscard]] bool is_partial(const std::string& gateway) const;
    // Whether a store that was full has room again.
    [[nodiscard]] bool has_room() const noexcept;

 private:
    using Peer = CopyPeer;
    using Slot = CopyOwners::Slot;
    using Owner = CopyOwners::Owner;

    Peer& peer(const std::string& gateway);
    void hold(Peer& peer, uint32_t slot, const conn::Connection& connection);
    bool renew_former(Peer& peer, uint32_t slot, const conn::Connection& connection, uint8_t share);
    // Puts a copy of `holder`, which is `from` or own_copies_. Unset: refused, and counted for `from`.
    Slot put(Peer& holder, Peer& from, const conn::Connection& connection);
    // False: a taken copy has one of the keys, `blocked_by_`, or a copy with a later packet has one.
    bool make_room(Peer& peer, const conn::Connection& connection);
    void examine_held(Slot slot, const conn::Connection& copy, const Sweep& by);
    void examine_taken(Slot slot, const conn::Connection& copy, const Sweep& by);
    // Of a taken copy whose connection has left the tables, or is about to.
    void replace_taken(Slot slot);
    // The copy has no owner from now on. Removes it unless a worker has taken it over.
    void drop(Slot copy);

    copies::Store& store_;
    std::shared_ptr<const GatewayShares> own_;
    std::map<std::string, Peer> peers_;
    Peer own_copies_;  // as if they were of a gateway
    Slot blocked_by_;
    CopyOwners owners_;
    bool is_reviewed_ = true;  // shares of owners are those of own_
    uint32_t cursor_ = 0;      // of sweep()
    uint64_t taken_ = 0;
    uint64_t taken_so_far_ = 0;  // in this sweep of the store
};

}  // namespace penstock::gateway
