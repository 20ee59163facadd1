// SPDX-License-Identifier: Apache-2.0
// One reading of a gateway's counters for `penstockctl top`, and the rates between two of them. The rates are
// pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/cli/gateway.hpp"
#include "control/cli/service_name.hpp"

namespace penstock::cli::top {

enum class View : uint8_t { Services, Backends, Workers, Ports, Drops, Clients };

// What a column's raw number is, and how it is shown.
enum class Kind : uint8_t {
    Count,    // a current number
    Percent,  // a current number, in hundredths of a percent
    Rate,     // a counter: increase per second
    Bits,     // a counter of bytes: bits per second
    Share,    // a counter of microseconds: percent of the time
};

struct Column {
    std::string_view name;  // in the table
    std::string_view key;   // in JSON
    Kind kind = Kind::Rate;
};

struct ViewSpec {
    View view = View::Services;
    std::string_view name;      // "services", for --view
    char key = 0;               // on the keyboard
    std::string_view row_name;  // header of the first column
    std::vector<Column> columns;
    std::string_view remark_name;  // header of the last column, a text; "": none
};
[[nodiscard]] std::span<const ViewSpec> all_views();
[[nodiscard]] const ViewSpec& spec_of(View view);

struct Row {
    std::string name;
    std::vector<uint64_t> values;  // one for each column
    std::string remark;
    bool operator==(const Row&) const = default;
};

// The numbers above the table, of the whole gateway.
inline constexpr Column kTotals[] = {
    {"in", "rx_packets_per_second", Kind::Rate},
    {"", "rx_bits_per_second", Kind::Bits},
    {"out", "tx_packets_per_second", Kind::Rate},
    {"", "tx_bits_per_second", Kind::Bits},
    {"drops", "drops_per_second", Kind::Rate},
    {"open", "open_connections", Kind::Count},
    {"table", "connection_table_percent", Kind::Percent},
};

struct Sample {
    std::chrono::steady_clock::time_point taken;
    std::string gateway;
    uint64_t uptime_ms = 0;
    View view = View::Services;
    std::vector<Row> rows;
    std::vector<uint64_t> totals;  // as kTotals
    std::string note;              // about the view: what it cannot show; ""
};

// Connections that the view Clients reads at most: listing 100,000 takes about a second.
inline constexpr uint32_t kClientConnectionsMax = 100'000;

// Reads the counters that the view needs. Blocks for its calls. The views of Services, backends and clients
// cover `which` only.
[[nodiscard]] Result<Sample> take_sample(Gateway& gateway, View view, const ServiceName& which = {});

struct RatedRow {
    std::string name;
    std::vector<double> values;  // as the kinds of the columns say: per second, or percent
    std::string remark;
};
struct Rates {
    std::vector<RatedRow> rows;
    std::vector<double> totals;
    double interval_s = 0;
    bool restarted = false;  // the gateway's counters began anew between the two readings
};

// A row that is new counts from 0. After a restart all rows do, over the time since the restart. A single
// counter that has decreased counts from 0 too. The samples are of one view.
[[nodiscard]] Rates rates_between(const Sample& before, const Sample& after);

}  // namespace penstock::cli::top
