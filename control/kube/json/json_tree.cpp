// SPDX-License-Identifier: Apache-2.0
#include "control/kube/json/json_tree.hpp"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace penstock::kube {
namespace {

namespace ondemand = simdjson::ondemand;

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

size_t digits_at(std::string_view text, size_t at) noexcept {
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) {
        ++end;
    }
    return end - at;
}

// The grammar of RFC 8259. Null: `text` is not a number.
ValueKind number_kind(std::string_view text) noexcept {
    size_t at = text.starts_with('-') ? 1 : 0;
    const size_t whole = digits_at(text, at);
    if (whole == 0 || (whole > 1 && text[at] == '0')) {
        return ValueKind::Null;
    }
    at += whole;
    const bool is_integer = at == text.size();
    if (at < text.size() && text[at] == '.') {
        const size_t fraction = digits_at(text, at + 1);
        if (fraction == 0) {
            return ValueKind::Null;
        }
        at += 1 + fraction;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        at += at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? 2 : 1;
        const size_t exponent = digits_at(text, at);
        if (exponent == 0) {
            return ValueKind::Null;
        }
        at += exponent;
    }
    if (at != text.size()) {
        return ValueKind::Null;
    }
    return is_integer ? ValueKind::Integer : ValueKind::Float;
}

std::string_view without_space_behind(std::string_view token) noexcept {
    const size_t last = token.find_last_not_of(" \t\r\n");
    return token.substr(0, last + 1);
}

}  // namespace

struct JsonTree::Parser {
    ondemand::parser parser;
    std::vector<char> text;  // followed by simdjson's padding

    // Provides space for a text of `size` bytes. Grown in powers of two, because simdjson reallocates for
    // each text longer than all before. Released when the next text is small again, so that one large object
    // does not occupy memory permanently.
    simdjson::error_code make_room(size_t size) {
        constexpr size_t kSmall = size_t{256} * 1024;
        const size_t capacity = std::bit_ceil(std::max(size, kSmall));
        const bool fits = text.size() >= capacity + simdjson::SIMDJSON_PADDING;
        if (fits && (capacity > kSmall || text.size() == kSmall + simdjson::SIMDJSON_PADDING)) {
            return simdjson::SUCCESS;
        }
        text = std::vector<char>(capacity + simdjson::SIMDJSON_PADDING);
        parser = ondemand::parser();
        return parser.allocate(capacity, simdjson::DEFAULT_MAX_DEPTH);
    }
};

// Visits every value of the document, because simdjson validates only the values that are read and skips over
// the rest.
class JsonTree::Builder {
 public:
    Builder(JsonTree& tree, uint32_t depth_max) : tree_(tree), values_(tree.values_), depth_max_(depth_max) {}

    simdjson::error_code add(ondemand::value value, std::string_view key, uint32_t parent, uint32_t depth) {
        ondemand::json_type type{};
        SIMDJSON_TRY(value.type().get(type));
        const auto index = static_cast<uint32_t>(values_.size());
        if (index == kJsonValuesMax) {
            return simdjson::CAPACITY;
        }
        values_.push_back({.key = key, .parent = parent});
        simdjson::error_code error = simdjson::SUCCESS;
        switch (type) {
            case ondemand::json_type::object:
                error = add_object(value, index, depth);
                break;
            case ondemand::json_type::array:
                error = add_array(value, index, depth);
                break;
            case ondemand::json_type::string:
                values_[index].kind = ValueKind::String;
                error = value.get_string().get(values_[index].text);
                break;
            case ondemand::json_type::number:
            case ondemand::json_type::boolean:
            case ondemand::json_type::null:
                error = set_scalar(values_[index], without_space_behind(value.raw_json_token()));
                break;
        }
        values_[index].end = static_cast<uint32_t>(values_.size());
        return error;
    }

 private:
    simdjson::error_code add_object(ondemand::value& value, uint32_t index, uint32_t depth) {
        values_[index].kind = ValueKind::Mapping;
        if (is_too_deep(depth)) {
            return simdjson::SUCCESS;
        }
        ondemand::object object;
        SIMDJSON_TRY(value.get_object().get(object));
        for (auto each : object) {
            ondemand::field field;
            SIMDJSON_TRY(std::move(each).get(field));
            std::string_view key;
            SIMDJSON_TRY(field.unescaped_key().get(key));
            SIMDJSON_TRY(add(field.value(), key, index, depth + 1));
        }
        return simdjson::SUCCESS;
    }

    simdjson::error_code add_array(ondemand::value& value, uint32_t index, uint32_t depth) {
        values_[index].kind = ValueKind::List;
        if (is_too_deep(depth)) {
            return simdjson::SUCCESS;
        }
        ondemand::array array;
        SIMDJSON_TRY(value.get_array().get(array));
        for (auto each : array) {
            ondemand::value item;
            SIMDJSON_TRY(std::move(each).get(item));
            SIMDJSON_TRY(add(item, {}, index, depth + 1));
        }
        return simdjson::SUCCESS;
    }

    bool is_too_deep(uint32_t depth) noexcept {
        tree_.is_too_deep_ |= depth > depth_max_;
        return depth > depth_max_;
    }

    static simdjson::error_code set_scalar(Value& into, std::string_view token) noexcept {
        into.text = token;
        if (token == "true" || token == "false") {
            into.kind = ValueKind::Boolean;
            into.integer = token == "true" ? 1 : 0;
        } else if (token == "null") {
            into.kind = ValueKind::Null;
            into.text = {};
        } else if (into.kind = number_kind(token); into.kind == ValueKind::Null) {
            return simdjson::NUMBER_ERROR;
        } else if (into.kind == ValueKind::Integer &&
                   std::from_chars(token.data(), token.data() + token.size(), into.integer).ec !=
                       std::errc{}) {
            into.kind = ValueKind::Float;
        }
        return simdjson::SUCCESS;
    }

    JsonTree& tree_;
    std::vector<Value>& values_;
    uint32_t depth_max_;
};

JsonTree::JsonTree() : parser_(std::make_unique<Parser>()) {}
JsonTree::~JsonTree() = default;

Status JsonTree::parse(std::string_view json, uint32_t depth_max) {
    is_too_deep_ = false;
    constexpr size_t kValuesKept = 16 * 1024;
    if (values_.capacity() > kValuesKept) {
        values_ = {};
    }
    values_.clear();
    if (const auto error = parser_->make_room(json.size())) {
        return fail(Errc::Exhausted, simdjson::error_message(error));
    }
    std::memcpy(parser_->text.data(), json.data(), json.size());
    std::memset(parser_->text.data() + json.size(), 0, simdjson::SIMDJSON_PADDING);

    ondemand::document document;
    simdjson::error_code error =
        parser_->parser.iterate(parser_->text.data(), json.size(), parser_->text.size()).get(document);
    ondemand::value root;
    if (!error) {
        error = document.get_value().get(root);
    }
    if (!error) {
        error = Builder(*this, depth_max).add(root, {}, 0, 1);
    }
    const char* behind = nullptr;
    if (!error && document.current_location().get(behind) == simdjson::SUCCESS) {
        error = simdjson::TRAILING_CONTENT;
    }
    if (!error && values_[0].kind != ValueKind::Mapping) {
        error = simdjson::INCORRECT_TYPE;
    }
    if (error) {
        values_.clear();
        return fail(Errc::Corrupt, std::string("not a JSON object: ") + simdjson::error_message(error));
    }
    return {};
}

std::string JsonTree::path(uint32_t index, uint32_t root) const {
    if (index == root) {
        return {};
    }
    const Value& value = values_[index];
    const std::string parent = path(value.parent, root);
    if (values_[value.parent].kind == ValueKind::Mapping) {
        return path_of_field(parent, value.key);
    }
    size_t position = 0;
    for (uint32_t item = value.parent + 1; item < index; item = values_[item].end) {
        ++position;
    }
    return path_of_item(parent, position);
}

}  // namespace penstock::kube
