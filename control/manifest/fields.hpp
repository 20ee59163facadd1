// Typed access to the fields of one mapping. A field that is absent or null has its default (GEN-004); a field of another type than the
// API gives it is a fault that names path, type found and type wanted (GEN-003); fields nobody asks for are nobody's business (GEN-002).
// Borrows the tree. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/manifest/yaml_tree.hpp"

namespace penstock::manifest {

class Fields {
 public:
    // `mapping` may be null: a mapping without fields. Faults are added to `faults`, which outlives this.
    Fields(const Value* mapping, std::string path, std::vector<Fault>* faults)
        : mapping_(mapping), path_(std::move(path)), faults_(faults) {}

    // Faults met so far by this and all made with the same list.
    [[nodiscard]] bool has_faults() const noexcept { return !faults_->empty(); }
    [[nodiscard]] bool has(std::string_view key) const { return present(key) != nullptr; }
    [[nodiscard]] std::string text(std::string_view key) const;
    // The API server fills defaults for "" as it does for absence.
    [[nodiscard]] std::string text_or(std::string_view key, std::string_view when_empty) const;
    [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
    [[nodiscard]] std::optional<int64_t> integer(std::string_view key) const;
    // IntOrString, as its text.
    [[nodiscard]] std::string integer_or_text(std::string_view key) const;
    [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
    [[nodiscard]] std::map<std::string, std::string> text_map(std::string_view key) const;
    [[nodiscard]] Fields mapping(std::string_view key) const;
    // A list of mappings.
    [[nodiscard]] std::vector<Fields> mappings(std::string_view key) const;

 private:
    // Null for absent and for null.
    [[nodiscard]] const Value* present(std::string_view key) const;
    [[nodiscard]] const Value* present_as(std::string_view key, Value::Kind kind) const;
    [[nodiscard]] std::string path_to(std::string_view key) const;
    void wrong_type(const std::string& path, const Value& found, const char* wanted) const;

    const Value* mapping_;
    std::string path_;
    std::vector<Fault>* faults_;
};

}  // namespace penstock::manifest
