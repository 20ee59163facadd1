// SPDX-License-Identifier: Apache-2.0
#include "control/kube/fields.hpp"

namespace penstock::kube {

const char* to_string(ValueKind kind) noexcept {
    switch (kind) {
        case ValueKind::Null:
            return "null";
        case ValueKind::Boolean:
            return "a boolean";
        case ValueKind::Integer:
            return "an integer";
        case ValueKind::Float:
            return "a number with a fraction";
        case ValueKind::String:
            return "a string";
        case ValueKind::List:
            return "a list";
        case ValueKind::Mapping:
            return "a mapping";
    }
    return "nothing";
}

std::string wrong_type(std::string_view path, ValueKind found, std::string_view text,
                       std::string_view wanted) {
    constexpr size_t kShown = 40;
    std::string rule(path);
    rule.append(" is ").append(to_string(found));
    if (found == ValueKind::String || !text.empty()) {
        const std::string quote = found == ValueKind::String ? "\"" : "";
        rule.append(" (")
            .append(quote)
            .append(text.substr(0, kShown))
            .append(text.size() > kShown ? "..." : "")
            .append(quote)
            .append(")");
    }
    return rule.append(", must be ").append(wanted).append(" (GEN-003)");
}

std::string path_of_field(std::string_view mapping, std::string_view key) {
    return mapping.empty() ? std::string(key) : std::string(mapping).append(".").append(key);
}

std::string path_of_item(std::string_view list, size_t index) {
    return std::string(list).append("[").append(std::to_string(index)).append("]");
}

std::string path_of_entry(std::string_view map, std::string_view key) {
    constexpr size_t kShown = 80;
    return std::string(map).append("[\"").append(key.substr(0, kShown)).append("\"]");
}

}  // namespace penstock::kube
