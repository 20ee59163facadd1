#include "control/manifest/fields.hpp"

namespace penstock::manifest {
namespace {

// What was found, short enough for a log line: `a string ("80")`.
std::string described(const Value& value) {
    constexpr size_t kShown = 40;
    std::string text = to_string(value.kind);
    if (value.kind == Value::Kind::String) {
        text += " (\"" + value.text.substr(0, kShown) + (value.text.size() > kShown ? "...\")" : "\")");
    } else if (!value.text.empty()) {
        text += " (" + value.text.substr(0, kShown) + (value.text.size() > kShown ? "...)" : ")");
    }
    return text;
}

std::string indexed(const std::string& path, size_t index) {
    return path + "[" + std::to_string(index) + "]";
}

}  // namespace

const Value* Fields::present(std::string_view key) const {
    const Value* value = mapping_ == nullptr ? nullptr : mapping_->find(key);
    return value == nullptr || value->kind == Value::Kind::Null ? nullptr : value;
}

const Value* Fields::present_as(std::string_view key, Value::Kind kind) const {
    const Value* value = present(key);
    if (value != nullptr && value->kind != kind) {
        wrong_type(path_to(key), *value, to_string(kind));
        return nullptr;
    }
    return value;
}

std::string Fields::path_to(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Fields::wrong_type(const std::string& path, const Value& found, const char* wanted) const {
    faults_->push_back({found.line, path + " is " + described(found) + ", must be " + wanted + " (GEN-003)"});
}

std::string Fields::text(std::string_view key) const {
    const Value* value = present_as(key, Value::Kind::String);
    return value == nullptr ? std::string() : value->text;
}

std::string Fields::text_or(std::string_view key, std::string_view when_empty) const {
    std::string value = text(key);
    return value.empty() ? std::string(when_empty) : value;
}

std::optional<bool> Fields::boolean(std::string_view key) const {
    const Value* value = present_as(key, Value::Kind::Boolean);
    return value == nullptr ? std::nullopt : std::optional(value->boolean);
}

std::optional<int64_t> Fields::integer(std::string_view key) const {
    const Value* value = present_as(key, Value::Kind::Integer);
    return value == nullptr ? std::nullopt : std::optional(value->integer);
}

std::string Fields::integer_or_text(std::string_view key) const {
    const Value* value = present(key);
    if (value == nullptr) {
        return {};
    }
    if (value->kind == Value::Kind::Integer) {
        return std::to_string(value->integer);
    }
    if (value->kind != Value::Kind::String) {
        wrong_type(path_to(key), *value, "an integer or a string");
        return {};
    }
    return value->text;
}

std::vector<std::string> Fields::texts(std::string_view key) const {
    std::vector<std::string> result;
    if (const Value* list = present_as(key, Value::Kind::List)) {
        for (size_t i = 0; i < list->items.size(); ++i) {
            const Value& item = *list->items[i];
            if (item.kind == Value::Kind::String) {
                result.push_back(item.text);
            } else {
                wrong_type(indexed(path_to(key), i), item, "a string");
            }
        }
    }
    return result;
}

std::map<std::string, std::string> Fields::text_map(std::string_view key) const {
    std::map<std::string, std::string> result;
    if (const Value* map = present_as(key, Value::Kind::Mapping)) {
        for (const auto& [name, value] : map->fields) {
            if (value->kind == Value::Kind::String || value->kind == Value::Kind::Null) {
                result.emplace(name, value->kind == Value::Kind::Null ? std::string() : value->text);
            } else {
                wrong_type(path_to(key) + "[\"" + name.substr(0, 80) + "\"]", *value, "a string");
            }
        }
    }
    return result;
}

Fields Fields::mapping(std::string_view key) const {
    return {present_as(key, Value::Kind::Mapping), path_to(key), faults_};
}

std::vector<Fields> Fields::mappings(std::string_view key) const {
    std::vector<Fields> result;
    if (const Value* list = present_as(key, Value::Kind::List)) {
        result.reserve(list->items.size());
        for (size_t i = 0; i < list->items.size(); ++i) {
            const Value& item = *list->items[i];
            if (item.kind == Value::Kind::Mapping) {
                result.emplace_back(&item, indexed(path_to(key), i), faults_);
            } else {
                wrong_type(indexed(path_to(key), i), item, "a mapping");
            }
        }
    }
    return result;
}

}  // namespace penstock::manifest
