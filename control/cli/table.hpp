// SPDX-License-Identifier: Apache-2.0
// Text tables with aligned columns. Pure.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

class Table {
 public:
    struct Column {
        std::string name;
        bool is_number = false;  // aligned to the right
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    // Requires one cell for each column. An empty cell is printed as "-", so that scripts can count columns.
    void add(std::vector<std::string> cells);
    // Inserts a first column with the same cell in each row.
    void prepend(Column column, const std::string& cell);
    // Appends the rows of a table with the same columns.
    void append(const Table& other);
    // Header and rows. Columns are separated by two blanks, without trailing blanks. Each line is indented by
    // `indent` blanks.
    [[nodiscard]] std::string text(size_t indent = 0) const;

 private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace penstock::cli
