// SPDX-License-Identifier: Apache-2.0
// Interface through which the object schema (object_schema.hpp) reads one mapping of fields, from YAML or
// JSON. An absent or null field has its default (GEN-004). A field whose type differs from the API type is a
// fault that names path, type found and type expected (GEN-003). Fields that the schema does not read are
// ignored (GEN-002).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::kube {

// Type of a value as written. A number beyond int64 is a Float, as is any with a point or an exponent
// (APISYNC-017).
enum class ValueKind : uint8_t { Null, Boolean, Integer, Float, String, List, Mapping };

// "a string", "an integer", ...: for messages.
[[nodiscard]] const char* to_string(ValueKind kind) noexcept;

// `spec.ports[0].port is a string ("80"), must be an integer (GEN-003)`. `text`: a scalar as
// written; "" for others.
[[nodiscard]] std::string wrong_type(std::string_view path, ValueKind found, std::string_view text,
                                     std::string_view wanted);

// Components of a path.
[[nodiscard]] std::string path_of_field(std::string_view mapping, std::string_view key);
[[nodiscard]] std::string path_of_item(std::string_view list, size_t index);
[[nodiscard]] std::string path_of_entry(std::string_view map, std::string_view key);

template <typename F>
concept FieldsLike = requires(const F& fields, std::string_view key) {
    // Faults so far, of this object and of all that report to the same list.
    { fields.has_faults() } -> std::same_as<bool>;
    { fields.has(key) } -> std::same_as<bool>;
    // "" if absent. Views live as long as the parsed text.
    { fields.text(key) } -> std::same_as<std::string_view>;
    { fields.boolean(key) } -> std::same_as<std::optional<bool>>;
    { fields.integer(key) } -> std::same_as<std::optional<int64_t>>;
    // An IntOrString, as text.
    { fields.integer_or_text(key) } -> std::same_as<std::string>;
    // The strings of a list, in order.
    fields.each_text(key, [](std::string_view) {});
    // The same, with the index of each in the list.
    fields.each_text_at(key, [](std::string_view, size_t) {});
    // A map of strings, in the order written; of duplicate keys the last one counts. A null value is "", as
    // for the API server.
    fields.each_entry(key, [](std::string_view, std::string_view) {});
    // An empty mapping if absent.
    { fields.mapping(key) } -> std::same_as<F>;
    // The mappings of a list, in order.
    fields.each_mapping(key, [](const F&) {});
    // Adds a fault of this field, or of an item of this list: "spec.addresses[0] RULE".
    fields.refuse(key, std::string());
    fields.refuse_item(key, size_t(), std::string());
};

}  // namespace penstock::kube
