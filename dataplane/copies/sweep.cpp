// SPDX-License-Identifier: Apache-2.0
#include "dataplane/copies/sweep.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace penstock::copies {

using conn::Connection;

Sweep::Sweep(const CoarseClock& clock, int32_t min_age)
    : clock_(clock),
      min_age_(min_age),
      refresh_(static_cast<int32_t>(clock.from_milliseconds(uint64_t{kRefreshS} * 1000))) {}

Result<Sweep> Sweep::create(std::span<const conn::Table* const> tables, const CoarseClock& clock,
                            int32_t min_age, const Store* store) {
    Sweep sweep(clock, min_age);
    uint64_t units = 0;
    const auto add = [&](const conn::Table& table, const Store* of) {
        sweep.sources_.push_back({&table, of, static_cast<uint32_t>(units), {}});
        units += (uint64_t{table.capacity()} + 1) / 2 * 2;  // a table has whole pairs
    };
    for (const conn::Table* table : tables) {
        add(*table, nullptr);
    }
    if (store != nullptr) {
        add(store->table(), store);
    }
    constexpr uint64_t kSlots = uint64_t{std::numeric_limits<uint32_t>::max()} + 1;
    if (units > kSlots) {
        return fail(Errc::InvalidArgument, "copies of connections: the tables of " +
                                               std::to_string(tables.size()) + " workers have " +
                                               std::to_string(units) + " entries, of which " +
                                               std::to_string(kSlots) + " can be numbered");
    }
    return sweep;
}

// The state in the low byte. For SCTP, above it, a hash of both tags. One change of tags in 2^24 is not
// noticed, and is sent with the next refresh of the connection.
uint32_t Sweep::state_of(const Connection& connection) noexcept {
    if (!connection.is_sctp()) {
        return connection.state;
    }
    const uint32_t mixed = connection.tags[0] * 0x9e37'79b1U + connection.tags[1] * 0x85eb'ca6bU;
    return (mixed & ~0xffU) | connection.state;
}

bool Sweep::step(uint32_t units, CoarseTime now, const Selects& selects, std::vector<std::byte>& out) {
    units = std::min(units, kStepUnitsMax);
    for (; source_ < sources_.size(); ++source_, unit_ = 0) {
        Source& source = sources_[source_];
        // Never decreases, so no unit behind it has been sent.
        const uint32_t end = source.table->high_water();
        for (; unit_ < end; ++unit_, --units) {
            if (units == 0) {
                return false;
            }
            examine(source, unit_, now, selects, out);
        }
    }
    source_ = 0;
    return true;
}

void Sweep::examine(Source& source, uint32_t unit, CoarseTime now, const Selects& selects,
                    std::vector<std::byte>& out) {
    Connection connection;
    uint32_t generation = 0;
    const conn::Table::Unit seen = source.table->read(unit, connection, generation);
    if (seen == conn::Table::Unit::Replaced) {
        return;
    }
    const size_t block = unit / kBlockUnits;
    Sent* sent = block < source.blocks.size() && source.blocks[block] != nullptr
                     ? &(*source.blocks[block])[unit % kBlockUnits]
                     : nullptr;
    const bool was_sent = sent != nullptr && sent->generation != 0;
    const bool is_live = seen == conn::Table::Unit::Live &&
                         (source.store == nullptr || source.store->is_own(unit, generation, connection));
    const bool is_same = was_sent && is_live && sent->generation == generation;
    const Selection selection =
        is_live ? selects(connection.forward.destination, connection.forward.source) : Selection::None;
    const bool is_selected =
        selection == Selection::All ||
        (selection == Selection::Old && (is_same || units_between(connection.opened_at, now) >= min_age_));
    if (!is_selected) {
        if (was_sent) {
            append_ended(out, source.first_slot + unit);
            *sent = {};
            --held_;
        }
        return;
    }
    const uint32_t state = state_of(connection);
    if (is_same && sent->state == state && units_between(sent->last_seen, connection.last_seen) < refresh_) {
        return;
    }
    if (sent == nullptr) {
        source.blocks.resize(std::max(source.blocks.size(), block + 1));
        if (source.blocks[block] == nullptr) {
            source.blocks[block] = std::make_unique<Block>();
        }
        sent = &(*source.blocks[block])[unit % kBlockUnits];
    }
    append_held(out, source.first_slot + unit, connection, now, clock_);
    *sent = {generation, connection.last_seen, state};
    held_ += was_sent ? 0 : 1;
}

}  // namespace penstock::copies
