// SPDX-License-Identifier: Apache-2.0
// The screen of `penstockctl top`: what the keys select, and the text of one frame. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "control/cli/top/sample.hpp"

namespace penstock::cli::top {

struct Selection {
    View view = View::Services;
    size_t column = 0;  // of the view, by which rows are sorted
    bool ascending = false;
    size_t first_row = 0;  // rows above it are scrolled away
    bool quits = false;
    bool operator==(const Selection&) const = default;
};

// Applies the keys in `typed`, the bytes read from a terminal. Unknown keys do nothing.
void press(Selection& selection, std::string_view typed);

// The column with this name of the table or of JSON, in any case; nullopt: the view has none.
[[nodiscard]] std::optional<size_t> find_column(const ViewSpec& view, std::string_view name);

struct Frame {
    size_t width = 80;
    size_t height = 24;        // lines; 0: all rows, without the line about keys
    bool is_coloured = false;  // escape sequences for the header and for rows with drops
};

// The frame's lines, each with a newline. `message` replaces the rows' note: an error of the last reading.
[[nodiscard]] std::string frame_text(const Sample& sample, const Rates& rates, const Selection& selection,
                                     const Frame& frame, const std::string& message = "");

// One JSON object: view, interval, totals, rows in the selected order.
[[nodiscard]] std::string rates_json(const Sample& sample, const Rates& rates, const Selection& selection);

// "0", "3.5", "950", "1.23k", "12.3M": at most five characters up to 999T.
[[nodiscard]] std::string scaled(double value);

}  // namespace penstock::cli::top
