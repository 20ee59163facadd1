// SPDX-License-Identifier: Apache-2.0
// The type and the object that a manifest document defines, by the shared schema
// (control/kube/object_schema.hpp). Pure. Faults go to the list given to `fields`.
#pragma once

#include <optional>
#include <string>

#include "control/manifest/decode.hpp"
#include "control/manifest/fields.hpp"

namespace penstock::manifest {

struct TypeOfObject {
    std::string api_version;
    std::string kind;
};

// Default item type of List, and of the lists of the kinds that Penstock reads, such as ServiceList. An API
// server omits the type in the items of a typed list; the items of a List must contain it, so both fields are
// empty. nullopt: not a list.
[[nodiscard]] std::optional<TypeOfObject> item_type_of(const TypeOfObject& type);

// nullopt for types that Penstock does not read: other kinds, and these kinds in other groups (Knative has a
// Service too).
[[nodiscard]] std::optional<ObjectKind> kind_of(const TypeOfObject& type) noexcept;

// nullopt without a usable name or namespace.
[[nodiscard]] std::optional<ObjectId> identify(ObjectKind kind, const Fields& object);

// `id` is the result of identify(). Returns the reason why an API server would refuse an object of this name;
// nullopt if it would accept it.
[[nodiscard]] std::optional<std::string> wrong_name(const ObjectId& id);

[[nodiscard]] Object decode_object(const ObjectId& id, const TypeOfObject& type, const Fields& object);

}  // namespace penstock::manifest
