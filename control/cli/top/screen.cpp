// SPDX-License-Identifier: Apache-2.0
#include "control/cli/top/screen.hpp"

#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <utility>
#include <vector>

#include "control/cli/json.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli::top {
namespace {

constexpr size_t kCellWidth = 8;  // of a number, with the blank before it
constexpr size_t kNameMin = 16;
constexpr size_t kHeadLines = 3;  // above the rows
constexpr size_t kScrollRows = 10;
constexpr const char* kKeys =
    "s services b backends w workers p ports d drops c clients <> sort r rev q quit";

void select(Selection& selection, View view) {
    if (selection.view != view) {
        selection = {.view = view};
    }
}

void press_key(Selection& selection, std::string_view key) {
    const size_t columns = spec_of(selection.view).columns.size();
    if (key == "q" || key == "Q" || key == "\x03" || key == "\x04") {
        selection.quits = true;
    } else if (key == ">" || key == "." || key == "\033[C") {
        selection.column = (selection.column + 1) % columns;
    } else if (key == "<" || key == "," || key == "\033[D") {
        selection.column = (selection.column + columns - 1) % columns;
    } else if (key == "r") {
        selection.ascending = !selection.ascending;
    } else if (key == "\033[B" || key == "j") {
        ++selection.first_row;
    } else if (key == "\033[A" || key == "k") {
        selection.first_row -= std::min<size_t>(selection.first_row, 1);
    } else if (key == "\033[6~" || key == " ") {
        selection.first_row += kScrollRows;
    } else if (key == "\033[5~") {
        selection.first_row -= std::min(selection.first_row, kScrollRows);
    } else if (key.size() == 1) {
        for (const ViewSpec& view : all_views()) {
            if (view.key == key.front()) {
                select(selection, view.view);
            }
        }
    }
}

std::string fitted(std::string text, size_t width) {
    if (text.size() > width) {
        text.resize(width > 0 ? width - 1 : 0);
        text += width > 0 ? "~" : "";
    }
    return text;
}

std::string padded(std::string text, size_t width) {
    text = fitted(std::move(text), width);
    return text + std::string(width - text.size(), ' ');
}

std::string right(const std::string& text, size_t width) {
    return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string number_text_of(Kind kind, double value) {
    return kind == Kind::Percent || kind == Kind::Share ? scaled(value) + "%" : scaled(value);
}

std::vector<const RatedRow*> sorted_rows(const Rates& rates, const Selection& selection) {
    std::vector<const RatedRow*> rows;
    for (const RatedRow& row : rates.rows) {
        rows.push_back(&row);
    }
    std::ranges::stable_sort(rows, [&](const RatedRow* a, const RatedRow* b) {
        const double left = a->values[selection.column], right = b->values[selection.column];
        return left != right ? (selection.ascending ? left < right : left > right) : a->name < b->name;
    });
    return rows;
}

std::string first_line(const Sample& sample, const Rates& rates, size_t rows) {
    std::array<char, 32> interval{};
    std::snprintf(interval.data(), interval.size(), "%.1f s", rates.interval_s);
    return sample.gateway + " up " + duration_text(sample.uptime_ms) + "  table " + scaled(rates.totals[6]) +
           "%  " + std::string(spec_of(sample.view).name) + " " + std::to_string(rows) + "  interval " +
           interval.data() + (rates.restarted ? "  restarted" : "");
}

std::string totals_line(const Rates& rates) {
    const std::vector<double>& totals = rates.totals;
    return "in " + scaled(totals[0]) + " p/s " + scaled(totals[1]) + "bit/s out " + scaled(totals[2]) +
           " p/s " + scaled(totals[3]) + "bit/s drops " + scaled(totals[4]) + "/s open " + scaled(totals[5]);
}

}  // namespace

std::string scaled(double value) {
    constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < kUnits.size()) {
        value /= 1000;
        ++unit;
    }
    std::array<char, 40> text{};
    const int digits = unit == 0 ? (value < 9.95 ? 1 : 0) : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    std::string number(text.data());
    if (unit == 0 && number.ends_with(".0")) {
        number.resize(number.size() - 2);
    }
    return number + kUnits[unit];
}

void press(Selection& selection, std::string_view typed) {
    while (!typed.empty()) {
        size_t length = 1;
        if (typed.starts_with("\033[")) {
            // A sequence ends with a letter or '~'.
            length = 2;
            while (length < typed.size() && std::isalpha(static_cast<unsigned char>(typed[length])) == 0 &&
                   typed[length] != '~') {
                ++length;
            }
            length = std::min(length + 1, typed.size());
        }
        press_key(selection, typed.substr(0, length));
        typed.remove_prefix(length);
    }
}

std::optional<size_t> find_column(const ViewSpec& view, std::string_view name) {
    const auto same = [&](std::string_view other) {
        return std::ranges::equal(
            name, other, [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    };
    const auto found = std::ranges::find_if(
        view.columns, [&](const Column& column) { return same(column.name) || same(column.key); });
    return found == view.columns.end() ? std::nullopt
                                       : std::optional(static_cast<size_t>(found - view.columns.begin()));
}

std::string frame_text(const Sample& sample, const Rates& rates, const Selection& selection,
                       const Frame& frame, const std::string& message) {
    const ViewSpec& view = spec_of(sample.view);
    const auto rows = sorted_rows(rates, selection);
    const size_t numbers = view.columns.size() * kCellWidth;
    const bool has_remark = !view.remark_name.empty();
    const size_t rest = frame.width > numbers ? frame.width - numbers : 0;
    // Half of the rest for a remark, but a name has at least its minimum.
    const size_t name_width = std::max(kNameMin, has_remark ? rest / 2 : rest);
    const size_t remark_width = has_remark && rest > name_width + 1 ? rest - name_width - 1 : 0;

    std::string text = fitted(first_line(sample, rates, rows.size()), frame.width) + "\n";
    const std::string note = !message.empty() ? message : sample.note;
    text += fitted(note.empty() ? totals_line(rates) : note, frame.width) + "\n";
    std::string header = padded(std::string(view.row_name), name_width);
    for (size_t i = 0; i < view.columns.size(); ++i) {
        const bool is_sorted = i == selection.column;
        header +=
            right(std::string(view.columns[i].name) + (is_sorted ? (selection.ascending ? "^" : "v") : ""),
                  kCellWidth);
    }
    header += remark_width > 0 ? " " + padded(std::string(view.remark_name), remark_width) : "";
    text += (frame.is_coloured ? "\033[7m" : "") + fitted(header, frame.width) +
            (frame.is_coloured ? "\033[0m" : "") + "\n";

    const size_t keys = frame.height == 0 ? 0 : 1;
    const size_t room = frame.height == 0                  ? rows.size()
                        : frame.height > kHeadLines + keys ? frame.height - kHeadLines - keys
                                                           : 0;
    const size_t first = std::min(selection.first_row, rows.size() > room ? rows.size() - room : 0);
    for (size_t i = first; i < rows.size() && i < first + room; ++i) {
        std::string line = padded(rows[i]->name, name_width);
        for (size_t column = 0; column < view.columns.size(); ++column) {
            line += right(number_text_of(view.columns[column].kind, rows[i]->values[column]), kCellWidth);
        }
        line += remark_width > 0 ? " " + fitted(rows[i]->remark, remark_width) : "";
        line.erase(line.find_last_not_of(' ') + 1);
        text += fitted(line, frame.width) + "\n";
    }
    if (keys > 0) {
        const size_t shown = std::min(room, rows.size() - first);
        text += std::string(room - shown, '\n') + fitted(kKeys, frame.width) + "\n";
    }
    return text;
}

std::string rates_json(const Sample& sample, const Rates& rates, const Selection& selection) {
    google::protobuf::Struct all;
    auto& fields = *all.mutable_fields();
    fields["gateway"].set_string_value(sample.gateway);
    fields["view"].set_string_value(std::string(spec_of(sample.view).name));
    fields["interval_seconds"].set_number_value(rates.interval_s);
    fields["uptime_ms"].set_number_value(static_cast<double>(sample.uptime_ms));
    fields["restarted"].set_bool_value(rates.restarted);
    fields["note"].set_string_value(sample.note);
    auto& totals = *fields["totals"].mutable_struct_value()->mutable_fields();
    for (size_t i = 0; i < std::size(kTotals); ++i) {
        totals[std::string(kTotals[i].key)].set_number_value(rates.totals[i]);
    }
    auto& list = *fields["rows"].mutable_list_value();
    for (const RatedRow* row : sorted_rows(rates, selection)) {
        auto& cells = *list.add_values()->mutable_struct_value()->mutable_fields();
        cells["name"].set_string_value(row->name);
        cells["remark"].set_string_value(row->remark);
        const auto& columns = spec_of(sample.view).columns;
        for (size_t i = 0; i < columns.size(); ++i) {
            cells[std::string(columns[i].key)].set_number_value(row->values[i]);
        }
    }
    return json_text(all);
}

}  // namespace penstock::cli::top
