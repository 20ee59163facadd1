// SPDX-License-Identifier: Apache-2.0
#include "control/kube/json/json_fields.hpp"

namespace penstock::kube {

const JsonTree::Value* JsonFields::find(std::string_view key) const noexcept {
    if (mapping_ == kNothing) {
        return nullptr;
    }
    const JsonTree::Value* found = nullptr;
    for (uint32_t child = mapping_ + 1, end = (*tree_)[mapping_].end; child < end;
         child = (*tree_)[child].end) {
        if ((*tree_)[child].key == key) {
            found = &(*tree_)[child];
        }
    }
    return found == nullptr || found->kind == ValueKind::Null ? nullptr : found;
}

const JsonTree::Value* JsonFields::find_as(std::string_view key, ValueKind kind) const {
    const JsonTree::Value* value = find(key);
    if (value != nullptr && value->kind != kind) {
        fault(*value, to_string(kind));
        return nullptr;
    }
    return value;
}

void JsonFields::fault(const JsonTree::Value& found, const char* wanted) const {
    faults_->add(
        [&] { return wrong_type(tree_->path(index_of(found), root_), found.kind, found.text, wanted); });
}

void JsonFields::fault_in_entry(const JsonTree::Value& found) const {
    faults_->add([&] {
        return wrong_type(path_of_entry(tree_->path(found.parent, root_), found.key), found.kind, found.text,
                          to_string(ValueKind::String));
    });
}

void JsonFields::refuse(std::string_view key, const std::string& rule) const {
    faults_->add([&] {
        const std::string path = mapping_ == kNothing ? "" : tree_->path(mapping_, root_);
        return path_of_field(path, key).append(" ").append(rule);
    });
}

void JsonFields::refuse_item(std::string_view key, size_t index, const std::string& rule) const {
    refuse(path_of_item(key, index), rule);
}

std::string_view JsonFields::text(std::string_view key) const {
    const JsonTree::Value* value = find_as(key, ValueKind::String);
    return value == nullptr ? std::string_view() : value->text;
}

std::optional<bool> JsonFields::boolean(std::string_view key) const {
    const JsonTree::Value* value = find_as(key, ValueKind::Boolean);
    return value == nullptr ? std::nullopt : std::optional(value->integer != 0);
}

std::optional<int64_t> JsonFields::integer(std::string_view key) const {
    const JsonTree::Value* value = find_as(key, ValueKind::Integer);
    return value == nullptr ? std::nullopt : std::optional(value->integer);
}

std::string JsonFields::integer_or_text(std::string_view key) const {
    const JsonTree::Value* value = find(key);
    if (value == nullptr) {
        return {};
    }
    if (value->kind == ValueKind::Integer) {
        return std::to_string(value->integer);
    }
    if (value->kind != ValueKind::String) {
        fault(*value, "an integer or a string");
        return {};
    }
    return std::string(value->text);
}

std::optional<uint32_t> JsonFields::index_of_mapping(std::string_view key) const {
    const JsonTree::Value* value = find_as(key, ValueKind::Mapping);
    return value == nullptr ? std::nullopt : std::optional(index_of(*value));
}

JsonFields JsonFields::mapping(std::string_view key) const {
    return {tree_, root_, index_of_mapping(key).value_or(kNothing), faults_};
}

}  // namespace penstock::kube
