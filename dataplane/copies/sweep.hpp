// SPDX-License-Identifier: Apache-2.0
// Finds what one follower does not have yet of the connections in the workers' tables: the tables are read
// unit by unit, and compared with what the follower has been sent (docs/adr/0050). Workers take no part in
// it. A change is therefore sent within one pass over the tables.
//
// For each unit, 12 bytes hold what was sent last. They are allocated in blocks of 4,096 units (48 KiB), the
// first time that a connection of the block is sent, and are kept until the end of the sweep: 12 MB for a
// million connections of IPv4, twice as many for IPv6.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/copies/record.hpp"
#include "dataplane/copies/store.hpp"

namespace penstock::copies {

// A connection is sent
// - once it is `min_age` old if it is selected, or at once if it is selected at any age;
// - again when its state has changed, or a tag of an SCTP association. The tags of TCP are not compared: they
//   change with the segments of a handshake, and behind a RST, and matter only to the next change of state;
// - again when its last_seen is kRefreshS later than the one that was sent.
// An Ended record follows when it has left its table, or is no longer selected. If another connection has
// taken its unit, and is sent at the same time, the Held record of that one replaces it.
//
// A slot (Record::slot) is a unit, counted through all tables. Own copies of a store (Store::Origin::Own) are
// swept like a table: they are connections of this gateway for which no packet has arrived yet.
//
// For one thread at a time, which may be any: tables are read by the functions that conn::Table has for any
// thread. An entry that is replaced during each of a few attempts to read it is left for the next pass.
class Sweep {
 public:
    // Units of one step() at most, so that decode() accepts its records as one batch.
    static constexpr uint32_t kStepUnitsMax = 4096;
    // The time that a connection of the follower may have been idle for less than it has.
    static constexpr uint32_t kRefreshS = 15;

    // `tables` are borrowed: one for each worker, always in the same order. `min_age` in units of `clock`,
    // which is that of the tables' times. `store` is borrowed, too; null: none. InvalidArgument: there are
    // more units than slots, 2^32.
    static Result<Sweep> create(std::span<const conn::Table* const> tables, const CoarseClock& clock,
                                int32_t min_age, const Store* store = nullptr);

    // The connections of a client to a VIP that concern the follower.
    enum class Selection : uint8_t { None, Old, All };
    using Selects = std::function<Selection(const IpAddr& vip, const IpAddr& client)>;
    // Examines up to `units` units (at most kStepUnitsMax) from where the last call ended, and appends the
    // records of changes to `out`: at most kHeldV4Bytes for each unit, and kEndedBytes for each pair. Returns
    // true if this call has ended a pass over all tables; the next one begins another pass. `selects` is
    // called for each connection, and may return something else in a later call.
    bool step(uint32_t units, CoarseTime now, const Selects& selects, std::vector<std::byte>& out);

    // Connections that the follower has, once it has read all records.
    [[nodiscard]] uint64_t held() const noexcept { return held_; }

 private:
    // The last Held record of a unit.
    struct Sent {
        uint32_t generation = 0;  // 0: none, or an Ended record followed
        CoarseTime last_seen;
        uint32_t state = 0;  // state_of()
    };
    static constexpr uint32_t kBlockUnits = 4096;
    using Block = std::array<Sent, kBlockUnits>;
    struct Source {
        const conn::Table* table = nullptr;
        const Store* store = nullptr;  // that has the table; null: it is a worker's
        uint32_t first_slot = 0;
        std::vector<std::unique_ptr<Block>> blocks;  // null: nothing of it was ever sent
    };

    Sweep(const CoarseClock& clock, int32_t min_age);
    static uint32_t state_of(const conn::Connection& connection) noexcept;
    void examine(Source& source, uint32_t unit, CoarseTime now, const Selects& selects,
                 std::vector<std::byte>& out);

    CoarseClock clock_;
    int32_t min_age_;
    int32_t refresh_;
    std::vector<Source> sources_;
    // Where the next step begins.
    size_t source_ = 0;
    uint32_t unit_ = 0;
    uint64_t held_ = 0;
};
// A pair of units gives most if two connections of IPv4 are sent, or one of IPv6 and the end of another one
// in the second unit.
static_assert(kHeldV6Bytes == 2 * kHeldV4Bytes &&
              Sweep::kStepUnitsMax / 2 * (kHeldV6Bytes + kEndedBytes) <= kBatchBytesMax);

}  // namespace penstock::copies
