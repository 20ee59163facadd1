// SPDX-License-Identifier: Apache-2.0
// Reads the fields of one mapping in a YAML tree for the schema (control/kube/fields.hpp). Borrows the tree.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/kube/fields.hpp"
#include "control/manifest/yaml_tree.hpp"

namespace penstock::manifest {

class Fields {
 public:
    // `mapping` may be null: a mapping without fields. Faults are added to `faults`, which outlives this.
    Fields(const Value* mapping, std::string path, std::vector<Fault>* faults)
        : mapping_(mapping), path_(std::move(path)), faults_(faults) {}

    [[nodiscard]] bool has_faults() const noexcept { return !faults_->empty(); }
    [[nodiscard]] bool has(std::string_view key) const { return present(key) != nullptr; }
    [[nodiscard]] std::string_view text(std::string_view key) const;
    [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
    [[nodiscard]] std::optional<int64_t> integer(std::string_view key) const;
    [[nodiscard]] std::string integer_or_text(std::string_view key) const;
    [[nodiscard]] Fields mapping(std::string_view key) const;

    template <typename Function>
    void each_text(std::string_view key, const Function& function) const {
        each_item(key, kube::ValueKind::String,
                  [&](const Value& item, size_t) { function(std::string_view(item.text)); });
    }
    template <typename Function>
    void each_text_at(std::string_view key, const Function& function) const {
        each_item(key, kube::ValueKind::String,
                  [&](const Value& item, size_t index) { function(std::string_view(item.text), index); });
    }
    void refuse(std::string_view key, const std::string& rule) const;
    void refuse_item(std::string_view key, size_t index, const std::string& rule) const;
    template <typename Function>
    void each_mapping(std::string_view key, const Function& function) const {
        each_item(key, kube::ValueKind::Mapping, [&](const Value& item, size_t index) {
            function(Fields(&item, kube::path_of_item(path_to(key), index), faults_));
        });
    }
    template <typename Function>
    void each_entry(std::string_view key, const Function& function) const {
        if (const Value* map = present_as(key, kube::ValueKind::Mapping)) {
            for (const auto& [name, value] : map->fields) {
                if (value->kind == kube::ValueKind::String) {
                    function(std::string_view(name), std::string_view(value->text));
                } else if (value->kind == kube::ValueKind::Null) {
                    function(std::string_view(name), std::string_view());
                } else {
                    wrong_type(kube::path_of_entry(path_to(key), name), *value,
                               to_string(kube::ValueKind::String));
                }
            }
        }
    }

 private:
    template <typename Function>
    void each_item(std::string_view key, kube::ValueKind kind, const Function& function) const {
        if (const Value* list = present_as(key, kube::ValueKind::List)) {
            for (size_t i = 0; i < list->items.size(); ++i) {
                if (list->items[i]->kind == kind) {
                    function(*list->items[i], i);
                } else {
                    wrong_type(kube::path_of_item(path_to(key), i), *list->items[i], to_string(kind));
                }
            }
        }
    }

    // Null for absent and for null.
    [[nodiscard]] const Value* present(std::string_view key) const;
    [[nodiscard]] const Value* present_as(std::string_view key, kube::ValueKind kind) const;
    [[nodiscard]] std::string path_to(std::string_view key) const { return kube::path_of_field(path_, key); }
    void wrong_type(const std::string& path, const Value& found, const char* wanted) const;

    const Value* mapping_;
    std::string path_;
    std::vector<Fault>* faults_;
};

static_assert(kube::FieldsLike<Fields>);

}  // namespace penstock::manifest
