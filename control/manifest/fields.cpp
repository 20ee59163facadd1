// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/fields.hpp"

namespace penstock::manifest {

const Value* Fields::present(std::string_view key) const {
    const Value* value = mapping_ == nullptr ? nullptr : mapping_->find(key);
    return value == nullptr || value->kind == kube::ValueKind::Null ? nullptr : value;
}

const Value* Fields::present_as(std::string_view key, kube::ValueKind kind) const {
    const Value* value = present(key);
    if (value != nullptr && value->kind != kind) {
        wrong_type(path_to(key), *value, to_string(kind));
        return nullptr;
    }
    return value;
}

void Fields::wrong_type(const std::string& path, const Value& found, const char* wanted) const {
    faults_->push_back({found.line, kube::wrong_type(path, found.kind, found.text, wanted)});
}

void Fields::refuse(std::string_view key, const std::string& rule) const {
    const Value* value = present(key);
    const uint32_t line = value != nullptr ? value->line : (mapping_ != nullptr ? mapping_->line : 0);
    faults_->push_back({line, path_to(key) + " " + rule});
}

void Fields::refuse_item(std::string_view key, size_t index, const std::string& rule) const {
    const Value* list = present(key);
    const bool is_there = list != nullptr && index < list->items.size();
    faults_->push_back(
        {is_there ? list->items[index]->line : 0, kube::path_of_item(path_to(key), index) + " " + rule});
}

std::string_view Fields::text(std::string_view key) const {
    const Value* value = present_as(key, kube::ValueKind::String);
    return value == nullptr ? std::string_view() : std::string_view(value->text);
}

std::optional<bool> Fields::boolean(std::string_view key) const {
    const Value* value = present_as(key, kube::ValueKind::Boolean);
    return value == nullptr ? std::nullopt : std::optional(value->boolean);
}

std::optional<int64_t> Fields::integer(std::string_view key) const {
    const Value* value = present_as(key, kube::ValueKind::Integer);
    return value == nullptr ? std::nullopt : std::optional(value->integer);
}

std::string Fields::integer_or_text(std::string_view key) const {
    const Value* value = present(key);
    if (value == nullptr) {
        return {};
    }
    if (value->kind == kube::ValueKind::Integer) {
        return std::to_string(value->integer);
    }
    if (value->kind != kube::ValueKind::String) {
        wrong_type(path_to(key), *value, "an integer or a string");
        return {};
    }
    return value->text;
}

Fields Fields::mapping(std::string_view key) const {
    return {present_as(key, kube::ValueKind::Mapping), path_to(key), faults_};
}

}  // namespace penstock::manifest
