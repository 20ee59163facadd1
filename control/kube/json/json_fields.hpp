// SPDX-License-Identifier: Apache-2.0
// Reads the fields of one mapping in a JsonTree for the schema (fields.hpp). A path is built only when a
// fault occurs: a cluster's endpoints are decoded by the hundred thousand, and nearly all of them are valid.
// Borrows tree and faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/kube/fields.hpp"
#include "control/kube/json/json_tree.hpp"

namespace penstock::kube {

// Faults of one object. The first few are listed and the rest counted: a hostile object may contain a
// million.
class FaultList {
 public:
    [[nodiscard]] bool empty() const noexcept { return total_ == 0; }
    template <typename MakeRule>
    void add(const MakeRule& make_rule) {
        constexpr size_t kTold = 20;
        if (++total_ <= kTold) {
            told_.push_back(make_rule());
        }
    }
    [[nodiscard]] std::vector<std::string> take() {
        if (total_ > told_.size()) {
            told_.push_back("and " + std::to_string(total_ - told_.size()) + " more faults");
        }
        total_ = 0;
        return std::exchange(told_, {});
    }

 private:
    std::vector<std::string> told_;
    size_t total_ = 0;
};

class JsonFields {
 public:
    // The fields of value `root` of `tree`; paths start there.
    JsonFields(const JsonTree& tree, uint32_t root, FaultList& faults)
        : JsonFields(&tree, root, root, &faults) {}

    [[nodiscard]] bool has_faults() const noexcept { return !faults_->empty(); }
    [[nodiscard]] bool has(std::string_view key) const noexcept { return find(key) != nullptr; }
    [[nodiscard]] std::string_view text(std::string_view key) const;
    [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
    [[nodiscard]] std::optional<int64_t> integer(std::string_view key) const;
    [[nodiscard]] std::string integer_or_text(std::string_view key) const;
    [[nodiscard]] JsonFields mapping(std::string_view key) const;
    // Index of that mapping in the tree; nullopt if absent.
    [[nodiscard]] std::optional<uint32_t> index_of_mapping(std::string_view key) const;

    template <typename Function>
    void each_text(std::string_view key, const Function& function) const {
        each_item(key, ValueKind::String, [&](const JsonTree::Value& item, size_t) { function(item.text); });
    }
    template <typename Function>
    void each_text_at(std::string_view key, const Function& function) const {
        each_item(key, ValueKind::String,
                  [&](const JsonTree::Value& item, size_t index) { function(item.text, index); });
    }
    template <typename Function>
    void each_mapping(std::string_view key, const Function& function) const {
        each_item(key, ValueKind::Mapping, [&](const JsonTree::Value& item, size_t) { function(at(item)); });
    }
    void refuse(std::string_view key, const std::string& rule) const;
    void refuse_item(std::string_view key, size_t index, const std::string& rule) const;
    template <typename Function>
    void each_entry(std::string_view key, const Function& function) const {
        if (const JsonTree::Value* map = find_as(key, ValueKind::Mapping)) {
            for_each_child(*map, [&](const JsonTree::Value& entry) {
                if (entry.kind == ValueKind::String || entry.kind == ValueKind::Null) {
                    function(entry.key, entry.text);
                } else {
                    fault_in_entry(entry);
                }
            });
        }
    }

 private:
    static constexpr uint32_t kNothing = ~uint32_t{0};

    JsonFields(const JsonTree* tree, uint32_t root, uint32_t mapping, FaultList* faults)
        : tree_(tree), faults_(faults), root_(root), mapping_(mapping) {}

    [[nodiscard]] uint32_t index_of(const JsonTree::Value& value) const noexcept {
        return static_cast<uint32_t>(&value - &(*tree_)[0]);
    }
    [[nodiscard]] JsonFields at(const JsonTree::Value& value) const noexcept {
        return {tree_, root_, index_of(value), faults_};
    }

    template <typename Function>
    void for_each_child(const JsonTree::Value& parent, const Function& function) const {
        for (uint32_t child = index_of(parent) + 1; child < parent.end; child = (*tree_)[child].end) {
            function((*tree_)[child]);
        }
    }
    template <typename Function>
    void each_item(std::string_view key, ValueKind kind, const Function& function) const {
        if (const JsonTree::Value* list = find_as(key, ValueKind::List)) {
            size_t index = 0;
            for_each_child(*list, [&](const JsonTree::Value& item) {
                if (item.kind == kind) {
                    function(item, index);
                } else {
                    fault(item, to_string(kind));
                }
                ++index;
            });
        }
    }

    // The last field of that name. Null for absent and for null.
    [[nodiscard]] const JsonTree::Value* find(std::string_view key) const noexcept;
    [[nodiscard]] const JsonTree::Value* find_as(std::string_view key, ValueKind kind) const;
    void fault(const JsonTree::Value& found, const char* wanted) const;
    void fault_in_entry(const JsonTree::Value& found) const;

    const JsonTree* tree_;
    FaultList* faults_;
    uint32_t root_;
    uint32_t mapping_;  // kNothing: a mapping without fields
};

static_assert(FieldsLike<JsonFields>);

}  // namespace penstock::kube
