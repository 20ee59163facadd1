// What a manifest's document defines: its type, and the object in it by the one schema (control/kube/object_schema.hpp). Pure. Faults go to
// the list that `fields` was made with.
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

// For List, ServiceList, EndpointSliceList and NodeList: what their items are unless they say it themselves (an API server leaves it out
// of a typed list's items; a List's items must say it, so both are empty). nullopt: no list.
[[nodiscard]] std::optional<TypeOfObject> item_type_of(const TypeOfObject& type);

// nullopt for what Penstock does not read: other kinds, and these kinds of other groups (Knative has a Service too).
[[nodiscard]] std::optional<ObjectKind> kind_of(const TypeOfObject& type) noexcept;

// nullopt where there is no usable name or namespace.
[[nodiscard]] std::optional<ObjectId> identify(ObjectKind kind, const Fields& object);

// `id` is what identify() said.
// Why an API server would refuse an object of this name; nullopt where it would not.
[[nodiscard]] std::optional<std::string> wrong_name(const ObjectId& id);

[[nodiscard]] Object decode_object(const ObjectId& id, const TypeOfObject& type, const Fields& object);

}  // namespace penstock::manifest
