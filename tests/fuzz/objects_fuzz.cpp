// SPDX-License-Identifier: Apache-2.0
// Any bytes as one object of each kind. Decoding terminates, the result satisfies its invariants, and the
// decoder agrees with simdjson's DOM parser about the validity of JSON. The manifest room, which reads the
// same text as YAML with the same schema, is a second implementation to compare objects with.
#include <simdjson.h>

#include <string>
#include <string_view>

#include "control/kube/decode.hpp"
#include "control/kube/json/json_tree.hpp"
#include "control/manifest/decode.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::kube {
namespace {

void check_promises(const DecodedObject& object, ObjectKind kind) {
    PENSTOCK_CHECK(object.id.kind == kind && !object.id.name.name.empty());
    PENSTOCK_CHECK(is_cluster_scoped(kind) == object.id.name.namespace_name.empty());
    PENSTOCK_CHECK(object.object.has_value() == object.faults.empty());
    if (!object.object) {
        return;
    }
    PENSTOCK_CHECK(object.object->index() == static_cast<size_t>(kind));
    if (const auto* slices = std::get_if<std::vector<EndpointSlicePtr>>(&*object.object)) {
        for (const EndpointSlicePtr& slice : *slices) {
            PENSTOCK_CHECK(!slice->endpoints.empty() &&
                           slice->meta.name.starts_with(object.id.name.name + "-"));
        }
    } else if (const auto* node = std::get_if<NodePtr>(&*object.object)) {
        PENSTOCK_CHECK((*node)->meta.name == object.id.name.name);
    }
}

// The DOM parser rejects numbers that exceed its range and texts that are too deep; otherwise the two must
// agree.
void check_json(std::string_view text) {
    static simdjson::dom::parser reference;  // created once: construction costs more than most inputs
    const auto document = reference.parse(text.data(), text.size());
    const bool refused =
        document.error() == simdjson::NUMBER_ERROR || document.error() == simdjson::DEPTH_ERROR;
    static JsonTree tree;
    const bool accepted = tree.parse(text).has_value();
    if (!refused && !tree.is_too_deep()) {
        PENSTOCK_CHECK(accepted == (!document.error() && document.is_object()));
    }
}

// Some texts have another meaning in YAML. If both rooms find a valid object under one name, it is the same
// object.
template <typename Ptr>
void check_against_manifest(std::string_view text, const DecodedObject& object) {
    const manifest::DecodedFile file = manifest::decode(text, "f");
    if (!object.object || file.objects.size() != 1 || !file.objects[0].object ||
        file.objects[0].id != object.id) {
        return;
    }
    auto mine = *std::get<Ptr>(*object.object);
    if constexpr (std::same_as<Ptr, ServicePtr>) {
        mine.awaits_cluster_ip = std::get<Service>(*file.objects[0].object).awaits_cluster_ip;
    }
    PENSTOCK_CHECK(mine == std::get<decltype(mine)>(*file.objects[0].object));
}

}  // namespace
}  // namespace penstock::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock::kube;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_json(text);
    static Decoder decoder;
    for (const ObjectKind kind : {ObjectKind::Service, ObjectKind::EndpointSlice, ObjectKind::Endpoints,
                                  ObjectKind::Node, ObjectKind::Namespace}) {
        const auto decoded = decode_object(decoder, kind, text);
        if (!decoded) {
            PENSTOCK_CHECK(!decoded.error().what.empty());
            continue;
        }
        check_promises(*decoded, kind);
        if (kind == ObjectKind::Service) {
            check_against_manifest<ServicePtr>(text, *decoded);
        } else if (kind == ObjectKind::EndpointSlice) {
            check_against_manifest<EndpointSlicePtr>(text, *decoded);
        } else if (kind == ObjectKind::Node) {
            check_against_manifest<NodePtr>(text, *decoded);
        } else if (kind == ObjectKind::Namespace) {
            check_against_manifest<NamespacePtr>(text, *decoded);
        }
    }
    static_cast<void>(decode_status(decoder, text));
    return 0;
}
