// Aligned columns for people. Pure.
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

    // As many cells as there are columns; an empty one is shown as "-", so that columns can be counted by scripts.
    void add(std::vector<std::string> cells);
    // Header and rows, two blanks between columns, none at a line's end. `indent` blanks before each line.
    [[nodiscard]] std::string text(size_t indent = 0) const;

 private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace penstock::cli
