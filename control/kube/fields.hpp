// How the schema of the objects (object_schema.hpp) sees one mapping of fields, whether it was written as YAML or as JSON. A field that is
// absent or null has its default (GEN-004); a field of another type than the API gives it is a fault that names path, type found and type
// wanted (GEN-003); fields nobody asks for are nobody's business (GEN-002).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::kube {

// What a value is written as. A number beyond int64 is a Float, as is any with a point or an exponent (APISYNC-017).
enum class ValueKind : uint8_t { Null, Boolean, Integer, Float, String, List, Mapping };

// "a string", "an integer", ...: for messages.
[[nodiscard]] const char* to_string(ValueKind kind) noexcept;

// `spec.ports[0].port is a string ("80"), must be an integer (GEN-003)`. `text`: a scalar as written; "" for others.
[[nodiscard]] std::string wrong_type(std::string_view path, ValueKind found, std::string_view text,
                                     std::string_view wanted);

// The pieces of a path.
[[nodiscard]] std::string path_of_field(std::string_view mapping, std::string_view key);
[[nodiscard]] std::string path_of_item(std::string_view list, size_t index);
[[nodiscard]] std::string path_of_entry(std::string_view map, std::string_view key);

template <typename F>
concept FieldsLike = requires(const F& fields, std::string_view key) {
    // Faults met so far, by this and by all that report to the same list.
    { fields.has_faults() } -> std::same_as<bool>;
    { fields.has(key) } -> std::same_as<bool>;
    // "" where absent. Views live as long as the text that was read.
    { fields.text(key) } -> std::same_as<std::string_view>;
    { fields.boolean(key) } -> std::same_as<std::optional<bool>>;
    { fields.integer(key) } -> std::same_as<std::optional<int64_t>>;
    // IntOrString, as its text.
    { fields.integer_or_text(key) } -> std::same_as<std::string>;
    // The strings of a list, in order.
    fields.each_text(key, [](std::string_view) {});
    // A map of strings, in the order written; of a key given twice the last counts. A null value is "", as it is for the API server.
    fields.each_entry(key, [](std::string_view, std::string_view) {});
    // Without fields where absent.
    { fields.mapping(key) } -> std::same_as<F>;
    // The mappings of a list, in order.
    fields.each_mapping(key, [](const F&) {});
};

}  // namespace penstock::kube
