// SPDX-License-Identifier: Apache-2.0
// A conversion between an enumeration of the model and one of the wire: one table for both directions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "dataplane/base/result.hpp"

namespace penstock::rpc {

// How an unset field (the wire's value 0) is reported, unless a row accepts it.
enum class Unset : uint8_t { IsMissing, IsUnknown };

template <typename Ours, typename Wire, size_t kRows>
class EnumTable {
 public:
    using Rows = std::array<std::pair<Ours, Wire>, kRows>;

    consteval EnumTable(const char* name, const Rows& rows, Unset unset)
        : name_(name), rows_(rows), unset_(unset) {}

    // The first row of `value`; 0, which is UNSPECIFIED in each enumeration of the wire, if there is none.
    [[nodiscard]] constexpr Wire to_wire(Ours value) const {
        for (const auto& [ours, wire] : rows_) {
            if (ours == value) {
                return wire;
            }
        }
        return Wire{};
    }

    // InvalidArgument names the number of a value without a row.
    [[nodiscard]] Result<Ours> from_wire(Wire value) const {
        for (const auto& [ours, wire] : rows_) {
            if (wire == value) {
                return ours;
            }
        }
        if (value == Wire{} && unset_ == Unset::IsMissing) {
            return fail(Errc::InvalidArgument, std::string(name_) + " is missing");
        }
        return fail(Errc::InvalidArgument, std::string(name_) + " " +
                                               std::to_string(static_cast<int>(value)) +
                                               " is unknown to this version");
    }

    // Whether each of the model's values below `count` has a row.
    [[nodiscard]] consteval bool sends_all(size_t count) const {
        for (size_t number = 0; number < count; ++number) {
            if (std::ranges::none_of(
                    rows_, [number](const auto& row) { return static_cast<size_t>(row.first) == number; })) {
                return false;
            }
        }
        return true;
    }

    // Whether each of the wire's values from 1 to `last` has a row.
    [[nodiscard]] consteval bool covers(Wire last) const {
        for (int number = 1; number <= static_cast<int>(last); ++number) {
            bool is_found = false;
            for (const auto& [ours, wire] : rows_) {
                is_found = is_found || static_cast<int>(wire) == number;
            }
            if (!is_found) {
                return false;
            }
        }
        return true;
    }

 private:
    const char* name_;  // of the value, in errors
    Rows rows_;
    Unset unset_;
};

// Several rows may have the same value of the model: the first is sent, all are accepted.
template <typename Ours, typename Wire, size_t kRows>
[[nodiscard]] consteval EnumTable<Ours, Wire, kRows> enum_table(const char* name,
                                                                const std::pair<Ours, Wire> (&rows)[kRows],
                                                                Unset unset = Unset::IsMissing) {
    return {name, std::to_array(rows), unset};
}

}  // namespace penstock::rpc
