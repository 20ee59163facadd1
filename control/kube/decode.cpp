// SPDX-License-Identifier: Apache-2.0
#include "control/kube/decode.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "control/kube/json/json_fields.hpp"
#include "control/kube/json/json_tree.hpp"
#include "control/kube/object_schema.hpp"
#include "control/kube/pool_schema.hpp"

namespace penstock::kube {
namespace {

// An event contains its object one level deeper.
constexpr uint32_t kEventDepthMax = kJsonDepthMax + 1;

Object read_object(const JsonFields& fields, const ObjectId& id) {
    switch (id.kind) {
        case ObjectKind::EndpointSlice:
            // Items of a list do not carry their version; the field for which the version matters exists only
            // in v1beta1.
            return std::make_shared<const EndpointSlice>(
                read_slice(fields, id.name, fields.text("apiVersion") != "discovery.k8s.io/v1"));
        case ObjectKind::Endpoints: {
            std::vector<EndpointSlicePtr> slices;
            for (EndpointSlice& slice : read_endpoints(fields, id.name)) {
                slices.push_back(std::make_shared<const EndpointSlice>(std::move(slice)));
            }
            return slices;
        }
        case ObjectKind::Node:
            return std::make_shared<const Node>(read_node(fields, id.name));
        case ObjectKind::AddressPool:
            return std::make_shared<const AddressPool>(read_pool(fields, id.name));
        case ObjectKind::Namespace:
            return std::make_shared<const Namespace>(read_namespace(fields, id.name));
        case ObjectKind::Service:
            break;
    }
    return std::make_shared<const Service>(read_service(fields, id.name, Writer::Server));
}

std::vector<IpAddr> ingress_addresses(const Object& object) {
    std::vector<IpAddr> addresses;
    if (const auto* service = std::get_if<ServicePtr>(&object)) {
        for (const LoadBalancerIngress& ingress : (*service)->ingress) {
            if (const auto address = IpAddr::parse(ingress.ip)) {
                addresses.push_back(*address);
            }
        }
    }
    return addresses;
}

// The object at `root` of the tree, or the reason why it has no name.
std::expected<DecodedObject, std::vector<std::string>> read_identified(const JsonTree& tree, uint32_t root,
                                                                       ObjectKind kind) {
    FaultList faults;
    const JsonFields fields(tree, root, faults);
    if (const std::string_view said = fields.text("kind"); !said.empty() && said != to_string(kind)) {
        faults.add([&] {
            return std::string("is a ")
                .append(said.substr(0, 80))
                .append(", must be a ")
                .append(to_string(kind));
        });
    }
    const auto id = read_id(fields, kind);
    if (!id) {
        if (faults.empty()) {
            faults.add([&] { return std::string(to_string(kind)) + " has no metadata.name"; });
        }
        return std::unexpected(faults.take());
    }
    DecodedObject decoded{
        .id = *id, .resource_version = std::string(fields.mapping("metadata").text("resourceVersion"))};
    if (tree.is_too_deep()) {
        faults.add([] {
            return "is nested deeper than " + std::to_string(kJsonDepthMax) + " levels (APISYNC-017)";
        });
    }
    Object object = read_object(fields, *id);
    if (faults.empty()) {
        decoded.object = std::move(object);
    } else {
        decoded.faults = faults.take();
        decoded.held_addresses = ingress_addresses(object);
    }
    return decoded;
}

WatchEvent::Type type_of(std::string_view text) noexcept {
    constexpr std::array<std::pair<std::string_view, WatchEvent::Type>, 5> kTypes = {
        {{"ADDED", WatchEvent::Type::Added},
         {"MODIFIED", WatchEvent::Type::Modified},
         {"DELETED", WatchEvent::Type::Deleted},
         {"BOOKMARK", WatchEvent::Type::Bookmark},
         {"ERROR", WatchEvent::Type::Error}}};
    for (const auto& [name, type] : kTypes) {
        if (name == text) {
            return type;
        }
    }
    return WatchEvent::Type::Unknown;
}

// Lenient: the status of a failing server is read as far as possible.
ApiStatus read_status(const JsonFields& status) {
    ApiStatus result{.code = status.integer("code").value_or(0),
                     .reason = std::string(status.text("reason")),
                     .message = std::string(status.text("message"))};
    const JsonFields details = status.mapping("details");
    if (const auto seconds = details.integer("retryAfterSeconds"); seconds && *seconds > 0) {
        constexpr int64_t kYear = 365 * 24 * 3600;  // prevents overflow in later sums
        result.retry_after = std::chrono::seconds(std::min(*seconds, kYear));
    }
    details.each_mapping("causes", [&](const JsonFields& cause) {
        result.causes.push_back(
            {.reason = std::string(cause.text("reason")), .message = std::string(cause.text("message"))});
    });
    return result;
}

void read_bookmark(const JsonFields& object, WatchEvent& event) {
    object.mapping("metadata").each_entry("annotations", [&](std::string_view key, std::string_view value) {
        if (key == "k8s.io/initial-events-end") {
            event.initial_events_end = value == "true";
        }
    });
}

}  // namespace

Decoder::Decoder() : tree_(std::make_unique<JsonTree>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Result<WatchEvent> decode_watch_event(Decoder& decoder, ObjectKind kind, std::string_view json) {
    JsonTree& tree = decoder.tree();
    PENSTOCK_TRY_STATUS_IN("watch event", tree.parse(json, kEventDepthMax));
    FaultList faults;
    const JsonFields fields(tree, 0, faults);
    WatchEvent event{.type_text = std::string(fields.text("type"))};
    event.type = type_of(event.type_text);
    const std::optional<uint32_t> root = fields.index_of_mapping("object");
    if (event.type_text.empty() || (!root && event.type != WatchEvent::Type::Unknown)) {
        return fail(Errc::Corrupt, "watch event: type or object is missing");
    }
    if (!root) {
        return event;
    }
    const JsonFields object(tree, *root, faults);
    if (event.type == WatchEvent::Type::Error) {
        event.status = read_status(object);
        return event;
    }
    event.resource_version = object.mapping("metadata").text("resourceVersion");
    if (event.type == WatchEvent::Type::Bookmark) {
        read_bookmark(object, event);
    } else if (event.type != WatchEvent::Type::Unknown) {
        auto decoded = read_identified(tree, *root, kind);
        if (decoded) {
            event.object = std::move(*decoded);
        } else {
            event.faults = std::move(decoded.error());
        }
    }
    return event;
}

Result<DecodedObject> decode_object(Decoder& decoder, ObjectKind kind, std::string_view json) {
    PENSTOCK_TRY_STATUS(decoder.tree().parse(json));
    auto decoded = read_identified(decoder.tree(), 0, kind);
    if (!decoded) {
        return fail(Errc::InvalidArgument, std::move(decoded.error().front()));
    }
    return std::move(*decoded);
}

Result<ApiStatus> decode_status(Decoder& decoder, std::string_view json) {
    PENSTOCK_TRY_STATUS_IN("status", decoder.tree().parse(json));
    FaultList faults;
    const JsonFields fields(decoder.tree(), 0, faults);
    if (fields.text("kind") != "Status") {
        return fail(Errc::Corrupt, "status: the object is not a Status");
    }
    return read_status(fields);
}

}  // namespace penstock::kube
