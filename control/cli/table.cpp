// SPDX-License-Identifier: Apache-2.0
#include "control/cli/table.hpp"

#include <algorithm>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::cli {

void Table::add(std::vector<std::string> cells) {
    PENSTOCK_CHECK(cells.size() == columns_.size());
    for (std::string& cell : cells) {
        if (cell.empty()) {
            cell = "-";
        }
    }
    rows_.push_back(std::move(cells));
}

void Table::prepend(Column column, const std::string& cell) {
    columns_.insert(columns_.begin(), std::move(column));
    for (auto& row : rows_) {
        row.insert(row.begin(), cell);
    }
}

void Table::append(const Table& other) {
    PENSTOCK_CHECK(other.columns_.size() == columns_.size());
    rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
}

std::string Table::text(size_t indent) const {
    std::vector<size_t> widths;
    for (size_t i = 0; i < columns_.size(); ++i) {
        size_t width = columns_[i].name.size();
        for (const auto& row : rows_) {
            width = std::max(width, row[i].size());
        }
        widths.push_back(width);
    }
    std::string result;
    const auto put = [&](const auto& cell_of) {
        std::string line(indent, ' ');
        for (size_t i = 0; i < columns_.size(); ++i) {
            const std::string& cell = cell_of(i);
            const std::string padding(widths[i] - cell.size(), ' ');
            line += (i == 0 ? "" : "  ") + (columns_[i].is_number ? padding + cell : cell + padding);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        result += line + "\n";
    };
    put([&](size_t i) -> const std::string& { return columns_[i].name; });
    for (const auto& row : rows_) {
        put([&](size_t i) -> const std::string& { return row[i]; });
    }
    return result;
}

}  // namespace penstock::cli
