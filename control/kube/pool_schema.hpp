// SPDX-License-Identifier: Apache-2.0
// Schema of AddressPool (penstock.io/v1alpha1) and of Namespace, for both notations, as object_schema.hpp is
// for the objects that are forwarded. A pool with any fault is refused as a whole, by field, so that a typing
// error never makes a pool larger or wider than intended. Pure.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/base/dns_name.hpp"
#include "control/kube/fields.hpp"
#include "control/kube/object_schema.hpp"
#include "control/kube/objects.hpp"
#include "control/kube/pool_values.hpp"

namespace penstock::kube {

namespace schema {

// Accepts up to `max` items.
template <FieldsLike Fields>
bool has_at_most(const Fields& fields, std::string_view key, size_t max, size_t count) {
    if (count > max) {
        fields.refuse(key, "has " + std::to_string(count) + " entries, at most " + std::to_string(max) +
                               " are possible");
    }
    return count <= max;
}

template <FieldsLike Fields>
std::vector<ipam::AddressRange> read_pool_ranges(const Fields& spec) {
    constexpr std::string_view kKey = "addresses";
    std::vector<ipam::AddressRange> ranges;
    size_t count = 0;
    spec.each_text_at(kKey, [&](std::string_view text, size_t index) {
        if (++count > kPoolAddressesMax) {
            return;
        }
        if (auto range = parse_address_range(text)) {
            ranges.push_back(*range);
        } else {
            spec.refuse_item(kKey, index, range.error().what);
        }
    });
    if (count == 0 && !spec.has_faults()) {
        spec.refuse(kKey, "must have at least one CIDR or range");
    }
    if (!has_at_most(spec, kKey, kPoolAddressesMax, count) || spec.has_faults()) {
        return {};
    }
    if (const auto overlap = overlap_in(ranges)) {
        spec.refuse_item(kKey, overlap->index,
                         "overlaps " + path_of_item(path_of_field("spec", kKey), overlap->with));
    }
    sort_ranges(ranges);
    return ranges;
}

template <FieldsLike Fields>
std::vector<std::string> read_pool_namespaces(const Fields& spec) {
    constexpr std::string_view kKey = "namespaces";
    std::set<std::string> names;
    size_t count = 0;
    spec.each_text_at(kKey, [&](std::string_view text, size_t index) {
        if (!is_dns_label(text)) {
            spec.refuse_item(kKey, index, shown_value(text) + ": is not the name of a namespace");
        } else if (++count <= kPoolNamespacesMax) {
            names.emplace(text);
        }
    });
    (void)has_at_most(spec, kKey, kPoolNamespacesMax, count);
    return {names.begin(), names.end()};
}

// A LabelSelector. An empty one matches everything, as in Kubernetes; an absent one is nullopt.
template <FieldsLike Fields>
std::optional<annotations::Selector> read_label_selector(const Fields& spec, std::string_view key) {
    if (!spec.has(key)) {
        return std::nullopt;
    }
    const Fields selector = spec.mapping(key);
    std::string text;
    size_t count = 0;
    const auto append = [&](const LabelRequirement& requirement) {
        // One beyond the maximum is counted, so that the selector is refused.
        return ++count <= annotations::Selector::kPartsMax ? append_requirement(requirement, text)
                                                           : std::nullopt;
    };
    selector.each_entry("matchLabels", [&](std::string_view label, std::string_view value) {
        if (const auto fault = append({std::string(label), "In", {std::string(value)}})) {
            selector.refuse("matchLabels", fault->rule);
        }
    });
    selector.each_mapping("matchExpressions", [&](const Fields& expression) {
        if (const auto fault =
                append({std::string(expression.text("key")), std::string(expression.text("operator")),
                        texts(expression, "values")})) {
            expression.refuse(fault->field, fault->rule);
        }
    });
    if (count > annotations::Selector::kPartsMax) {
        spec.refuse(key,
                    "has more than " + std::to_string(annotations::Selector::kPartsMax) + " requirements");
    }
    if (spec.has_faults() || text.empty()) {
        return annotations::Selector();
    }
    auto parsed = annotations::Selector::parse(text);
    if (!parsed) {  // append_requirement() has validated each part
        spec.refuse(key, "cannot be read: " + parsed.error().what);
        return std::nullopt;
    }
    return std::move(*parsed);
}

template <FieldsLike Fields>
std::vector<ipam::Reservation> read_reservations(const Fields& spec, const ipam::Pool& pool) {
    constexpr std::string_view kKey = "reservations";
    std::vector<ipam::Reservation> reservations;
    std::set<IpAddr> seen;
    size_t count = 0;
    spec.each_mapping(kKey, [&](const Fields& item) {
        if (++count > kPoolReservationsMax) {
            return;
        }
        const std::string_view text = item.text("address");
        const auto address = parse_reserved_address(text, pool.ranges, pool.avoid_buggy_ips);
        if (!address) {
            item.refuse("address", address.error().what);
        } else if (!seen.insert(*address).second) {
            item.refuse("address", shown_value(text) + ": is reserved twice");
        }
        ObjectName service{std::string(item.text("namespace")), std::string(item.text("name"))};
        for (const auto& [key, name] :
             {std::pair("namespace", service.namespace_name), std::pair("name", service.name)}) {
            if (!is_dns_label(name)) {
                item.refuse(key, shown_value(name) + ": must be the " + key + " of a Service");
            }
        }
        if (address) {
            reservations.push_back({*address, std::move(service)});
        }
    });
    (void)has_at_most(spec, kKey, kPoolReservationsMax, count);
    return reservations;
}

template <FieldsLike Fields>
int32_t read_priority(const Fields& spec) {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    const int64_t priority = spec.integer("priority").value_or(0);
    if (priority < 0 || priority > kMax) {
        spec.refuse("priority",
                    "(" + std::to_string(priority) + "): must be from 0 to " + std::to_string(kMax));
        return 0;
    }
    return static_cast<int32_t>(priority);
}

}  // namespace schema

// Faults of the whole spec are reported, except those that follow from an invalid list of addresses.
template <FieldsLike Fields>
AddressPool read_pool(const Fields& object, const ObjectName& name) {
    AddressPool result{.meta = schema::read_meta(object, ObjectKind::AddressPool, name),
                       .generation = object.mapping("metadata").integer("generation").value_or(0)};
    ipam::Pool& pool = result.pool;
    pool.name = name.name;
    if (!object.has("spec")) {
        object.refuse("spec", "is missing");
        return result;
    }
    const Fields spec = object.mapping("spec");
    pool.ranges = schema::read_pool_ranges(spec);
    pool.auto_assign = spec.boolean("autoAssign").value_or(true);
    pool.avoid_buggy_ips = spec.boolean("avoidBuggyIPs").value_or(false);
    pool.enforce = spec.boolean("enforce").value_or(false);
    pool.internal = spec.boolean("internal").value_or(false);
    pool.disabled = spec.boolean("disabled").value_or(false);
    pool.reassign = spec.boolean("reassign").value_or(false);
    pool.priority = schema::read_priority(spec);
    pool.namespaces = schema::read_pool_namespaces(spec);
    pool.namespace_selector = schema::read_label_selector(spec, "namespaceSelector");
    pool.service_selector = schema::read_label_selector(spec, "serviceSelector");
    if (pool.enforce && !spec.has("namespaceSelector") && pool.namespaces.empty()) {
        spec.refuse("enforce", "requires namespaces or namespaceSelector: it reserves the pool for them");
    }
    if (!pool.ranges.empty()) {
        pool.reservations = schema::read_reservations(spec, pool);
    }
    return result;
}

// An API server sets the label with the name; files and servers before 1.21 may lack it (GEN-004).
template <FieldsLike Fields>
Namespace read_namespace(const Fields& object, const ObjectName& name) {
    Namespace result{.meta = schema::read_meta(object, ObjectKind::Namespace, name)};
    result.meta.labels.try_emplace("kubernetes.io/metadata.name", name.name);
    return result;
}

}  // namespace penstock::kube
