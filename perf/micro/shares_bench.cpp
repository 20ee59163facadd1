// SPDX-License-Identifier: Apache-2.0
// Copies of connections for the heir of their share, at the sender and at the receiver: nanoseconds for each
// unit of a pass that finds no change, for each of a full copy, and for each record that is decoded. The
// yardstick is memcpy of the same units in the same run: a sweep cannot be faster than reading the table. At
// the receiver also the longest time for which the book of the copies is locked (copy_book_holds.hpp).
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/conn/entry.hpp"
#include "dataplane/copies/record.hpp"
#include "dataplane/copies/sweep.hpp"
#include "dataplane/shares/share_map.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/memory.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/harness/windows.hpp"
#include "perf/micro/connections.hpp"
#include "perf/micro/copy_book_holds.hpp"

namespace penstock::perf {
namespace {

using copies::Sweep;

constexpr CoarseClock kClock{TscRate{2'000'000'000}};
constexpr CoarseTime kNow{100'000};
constexpr int32_t kMinAge = 50;

class Bench {
 public:
    explicit Bench(uint32_t connections)
        : memory_(conn::Table::memory_needed(connections)),
          table_(*conn::Table::create(memory_.span(), connections, {1, 2})),
          buffer_(Sweep::kStepUnitsMax * conn::kUnitBytes) {
        for (uint32_t number = 0; number < connections; ++number) {
            conn::Connection connection;
            connection.forward = flow_key(number, conn::Direction::Forward);
            connection.reverse = flow_key(number, conn::Direction::Reverse);
            connection.opened_at = connection.last_seen = {kNow.value - 1000 - number % 60'000};
            connection.state = static_cast<uint8_t>(conn::TcpState::Established);
            static_cast<void>(
                table_.insert(connection, table_.hash(connection.forward), table_.hash(connection.reverse)));
        }
        count_ = table_.high_water();
        units_ = memory_.span().data() + conn::Table::memory_needed(connections) -
                 size_t{connections + 1} / 2 * 2 * conn::kUnitBytes;
        Sweep sweep = new_sweep();
        for (bool has_ended = false; !has_ended;) {
            std::vector<std::byte>& batch = batches_.emplace_back();
            has_ended = sweep.step(Sweep::kStepUnitsMax, kNow, selects_, batch);
            bytes_ += batch.size();
        }
        records_ = sweep.held();
        unchanged_.emplace(std::move(sweep));
    }

    [[nodiscard]] uint64_t records() const noexcept { return records_; }
    [[nodiscard]] double bytes_per_record() const noexcept {
        return static_cast<double>(bytes_) / static_cast<double>(records_);
    }

    BurstClock copy_units(uint64_t budget) {
        BurstClock clock;
        for (uint32_t unit = 0; clock.cycles() < budget; unit = unit < count_ ? unit : 0) {
            const uint32_t count = std::min(Sweep::kStepUnitsMax, count_ - unit);
            const uint64_t begin = cycles_begin();
            std::memcpy(buffer_.data(), units_ + size_t{unit} * conn::kUnitBytes,
                        size_t{count} * conn::kUnitBytes);
            asm volatile("" ::"r"(buffer_.data()) : "memory");
            clock.add(cycles_end() - begin, count);
            unit += count;
        }
        return clock;
    }

    BurstClock sweep_unchanged(uint64_t budget) {
        BurstClock clock;
        uint32_t left = count_;
        while (clock.cycles() < budget) {
            const uint32_t count = std::min(Sweep::kStepUnitsMax, left);
            batch_.clear();
            const uint64_t begin = cycles_begin();
            const bool has_ended = unchanged_->step(count, kNow, selects_, batch_);
            clock.add(cycles_end() - begin, count);
            changes_ += batch_.size();
            left = has_ended ? count_ : left - count;
        }
        return clock;
    }

    BurstClock sweep_all(uint64_t budget) {
        BurstClock clock;
        Sweep sweep = new_sweep();
        uint32_t left = count_;
        while (clock.cycles() < budget) {
            const uint32_t count = std::min(Sweep::kStepUnitsMax, left);
            batch_.clear();
            const uint64_t begin = cycles_begin();
            const bool has_ended = sweep.step(count, kNow, selects_, batch_);
            clock.add(cycles_end() - begin, count);
            left -= count;
            if (has_ended) {
                sweep = new_sweep();
                left = count_;
            }
        }
        return clock;
    }

    BurstClock decode_all(uint64_t budget) {
        BurstClock clock;
        for (size_t at = 0; clock.cycles() < budget; at = (at + 1) % batches_.size()) {
            const uint64_t begin = cycles_begin();
            const auto records = copies::decode(batches_[at], kNow, kClock);
            clock.add(cycles_end() - begin, records ? std::max<size_t>(records->size(), 1) : 1);
        }
        return clock;
    }

    // Records in passes without a change: must be none.
    [[nodiscard]] uint64_t changes() const noexcept { return changes_; }

 private:
    [[nodiscard]] Sweep new_sweep() const {
        const conn::Table* table = &table_;
        return *Sweep::create({&table, 1}, kClock, kMinAge);
    }

    HugeMemory memory_;
    conn::Table table_;
    uint32_t count_ = 0;  // units in use
    const std::byte* units_ = nullptr;
    std::vector<std::byte> buffer_, batch_;
    std::vector<std::vector<std::byte>> batches_;  // a full copy
    // As in production: 16 shares by a hash of the VIP, all with the same two gateways.
    shares::ShareMap shares_{16, {}};
    std::array<bool, shares::kSharesMax> is_followed_ = [] {
        std::array<bool, shares::kSharesMax> followed{};
        followed.fill(true);
        return followed;
    }();
    Sweep::Selects selects_ = [this](const IpAddr& vip, const IpAddr& client) {
        return is_followed_[shares_.share_of(vip, client)] ? Sweep::Selection::Old : Sweep::Selection::None;
    };
    std::optional<Sweep> unchanged_;
    uint64_t bytes_ = 0;
    uint64_t records_ = 0;
    uint64_t changes_ = 0;
};

void measure(const Options& options, uint32_t connections) {
    const size_t needed = conn::Table::memory_needed(connections) + size_t{connections} * 3 * 64;
    if (!fits_memory("shares", connections, needed)) {
        return;
    }
    Bench bench(connections);
    const std::string suffix = size_suffix(connections);
    const std::vector<Side> sides{
        {"shares.memcpy" + suffix, [&](uint64_t budget) { return bench.copy_units(budget); }},
        {"shares.unchanged" + suffix, [&](uint64_t budget) { return bench.sweep_unchanged(budget); }},
        {"shares.full_copy" + suffix, [&](uint64_t budget) { return bench.sweep_all(budget); }},
        {"shares.decode" + suffix, [&](uint64_t budget) { return bench.decode_all(budget); }},
    };
    const std::vector<Summary> result = interleave(sides, options.plan);
    const double ns_per_cycle = 1e9 / static_cast<double>(cycles_per_second());
    for (size_t i = 0; i < sides.size(); ++i) {
        print_value(sides[i].name + ".time", result[i].min * ns_per_cycle, i == 3 ? "ns/record" : "ns/unit");
        print_value(sides[i].name + ".to_memcpy", result[i].min / result[0].min, "ratio");
    }
    print_value("shares.record" + suffix, bench.bytes_per_record(), "bytes");
    print_value("shares.pass" + suffix, result[1].min * ns_per_cycle * connections / 1e6, "ms");
    print_remark(std::to_string(bench.records()) + " connections copied, " + std::to_string(bench.changes()) +
                 " bytes in passes without a change");
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 2> kSizes = {100'000, 1'000'000};
    constexpr std::array<uint32_t, 1> kQuickSizes = {100'000};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, {});
    print_fingerprint();
    for (const uint32_t connections : options.sizes) {
        measure(options, connections);
        measure_holds(options, connections);
    }
    return 0;
}
