// SPDX-License-Identifier: Apache-2.0
// Conversion of a backend set from and to the wire: its endpoints, and those that were excluded from it.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "control/rpc/convert.hpp"
#include "control/rpc/convert_rules.hpp"
#include "control/rpc/enum_table.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::rpc {
namespace {

// clang-format off
using Why = v1::ExcludedEndpoint::Why;
constexpr auto kExclusionReasons = enum_table<model::Exclusion, Why>("reason of exclusion", {
    {model::Exclusion::ForbiddenAddress, v1::ExcludedEndpoint::WHY_FORBIDDEN_ADDRESS},
    {model::Exclusion::NodeSelector, v1::ExcludedEndpoint::WHY_NODE_SELECTOR},
    {model::Exclusion::NotReady, v1::ExcludedEndpoint::WHY_NOT_READY},
    {model::Exclusion::Terminating, v1::ExcludedEndpoint::WHY_TERMINATING},
    {model::Exclusion::NotLocal, v1::ExcludedEndpoint::WHY_NOT_LOCAL},
    {model::Exclusion::TopologyKeys, v1::ExcludedEndpoint::WHY_TOPOLOGY_KEYS},
    {model::Exclusion::TopologyHints, v1::ExcludedEndpoint::WHY_TOPOLOGY_HINTS},
}, Unset::IsUnknown);
// clang-format on
static_assert(kExclusionReasons.covers(v1::ExcludedEndpoint::Why_MAX) &&
              kExclusionReasons.sends_all(model::kExclusions));

// Names the address family expected by the set, for the error text.
std::string family_text(const model::BackendSet& set) {
    return set.translates_family ? std::string("the set's endpoints, ") + to_string(set.endpoint_family()) +
                                       " behind " + to_string(set.family)
                                 : std::string("the set's family, ") + to_string(set.family);
}

Result<model::Endpoint> endpoint_from(const v1::Endpoint& message, const model::BackendSet& set) {
    PENSTOCK_TRY(auto address, unicast_address(message.address()));
    if (address.family() != set.endpoint_family()) {
        return invalid("address " + address.to_string() + " is not of " + family_text(set));
    }
    PENSTOCK_TRY(const auto port, l4_port(message.port()));
    const uint32_t weight = message.has_weight() ? message.weight() : 1;
    if (weight > 65535) {
        return invalid("weight " + std::to_string(weight) + " is not in 0-65535");
    }
    PENSTOCK_TRY_STATUS(check_name("node_name", message.node_name(), true));
    if (message.zone().size() > kNameBytesMax) {
        return invalid("zone is longer than " + std::to_string(kNameBytesMax) + " bytes");
    }
    return model::Endpoint{address, port, static_cast<uint16_t>(weight), message.node_name(), message.zone()};
}

Result<model::ExcludedEndpoint> excluded_from(const v1::ExcludedEndpoint& message,
                                              const model::BackendSet& set) {
    const std::string& bytes = message.address();
    model::ExcludedEndpoint out;
    if (bytes.size() != (set.endpoint_family() == IpFamily::V4 ? 4 : 16)) {
        return invalid("an address of " + std::to_string(bytes.size()) + " bytes is not of " +
                       family_text(set));
    }
    if (set.endpoint_family() == IpFamily::V4) {
        const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
        out.address = IpAddr::v4(at(0), at(1), at(2), at(3));
    } else {
        std::array<uint8_t, 16> octets;
        std::ranges::copy(bytes, octets.begin());
        out.address = IpAddr::v6(octets);
    }
    PENSTOCK_TRY(out.port, l4_port(message.port()));
    PENSTOCK_TRY(out.why, kExclusionReasons.from_wire(message.why()));
    out.serving = !message.not_serving();
    return out;
}

v1::ExcludedEndpoint excluded_to_proto(const model::ExcludedEndpoint& excluded) {
    v1::ExcludedEndpoint message;
    const auto& bytes = excluded.address.bytes();
    const size_t from = excluded.address.is_v4() ? bytes.size() - 4 : 0;
    message.set_address(bytes.data() + from, bytes.size() - from);
    message.set_port(excluded.port);
    message.set_why(kExclusionReasons.to_wire(excluded.why));
    message.set_not_serving(!excluded.serving);
    return message;
}

}  // namespace

Result<model::BackendSet> from_proto(const v1::BackendSet& message) {
    model::BackendSet set;
    set.family = message.ipv6() ? IpFamily::V6 : IpFamily::V4;
    set.translates_family = message.translates_family();
    PENSTOCK_TRY(const auto source, from_proto(message.source()));
    set.source = source;
    if (set.translates_family && set.source == lb::SourceMode::Keep) {
        return invalid(std::string("source KEEP is not possible with endpoints ") +
                       to_string(set.endpoint_family()) + " behind " + to_string(set.family) +
                       ": the client's address is of another family than the endpoints");
    }
    PENSTOCK_TRY(set.when_empty, from_proto(message.when_empty()));
    if (static_cast<uint32_t>(message.endpoints_size()) > limits::kBackendsPerServiceMax) {
        return invalid("endpoints: more than " + std::to_string(limits::kBackendsPerServiceMax));
    }
    set.endpoints.reserve(static_cast<size_t>(message.endpoints_size()));
    for (int i = 0; i < message.endpoints_size(); ++i) {
        auto endpoint = endpoint_from(message.endpoints(i), set);
        if (!endpoint) {
            // Concatenated here instead of by in_context, so that the path reads "sets[0].endpoints[3]: ...".
            return invalid(indexed("endpoints", i) + ": " + endpoint.error().what);
        }
        set.endpoints.push_back(std::move(*endpoint));
    }
    const auto place = [](const model::Endpoint& e) { return std::tie(e.address, e.port); };
    std::ranges::sort(set.endpoints, {}, place);
    const auto twice = std::ranges::adjacent_find(set.endpoints, {}, place);
    if (twice != set.endpoints.end()) {
        return invalid("endpoints: " + twice->socket().to_string() + " is listed twice");
    }
    if (static_cast<uint32_t>(message.excluded_size()) > limits::kBackendsPerServiceMax) {
        return invalid("excluded: more than " + std::to_string(limits::kBackendsPerServiceMax));
    }
    set.excluded.reserve(static_cast<size_t>(message.excluded_size()));
    for (int i = 0; i < message.excluded_size(); ++i) {
        const auto excluded = excluded_from(message.excluded(i), set);
        if (!excluded) {
            return invalid(indexed("excluded", i) + ": " + excluded.error().what);
        }
        set.excluded.push_back(*excluded);
    }
    const auto place_of = [](const auto& e) { return std::tie(e.address, e.port); };
    std::ranges::sort(set.excluded, {}, place_of);
    for (size_t i = 0; i < set.excluded.size(); ++i) {
        const auto& excluded = set.excluded[i];
        if ((i > 0 && place_of(set.excluded[i - 1]) == place_of(excluded)) ||
            std::ranges::binary_search(set.endpoints, place_of(excluded), {}, place)) {
            return invalid("excluded: " + excluded.socket().to_string() + " is listed twice");
        }
    }
    return set;
}

v1::Endpoint to_proto(const model::Endpoint& endpoint) {
    v1::Endpoint message;
    message.set_address(endpoint.address.to_string());
    message.set_port(endpoint.port);
    if (endpoint.weight != 1) {
        message.set_weight(endpoint.weight);
    }
    message.set_node_name(endpoint.node_name.value());
    message.set_zone(endpoint.zone.value());
    return message;
}

v1::BackendSet to_proto(const model::BackendSet& set) {
    v1::BackendSet message;
    message.set_source(to_proto(set.source));
    message.set_when_empty(to_proto(set.when_empty));
    message.set_ipv6(set.family == IpFamily::V6);
    message.set_translates_family(set.translates_family);
    message.mutable_endpoints()->Reserve(static_cast<int>(set.endpoints.size()));
    for (const auto& endpoint : set.endpoints) {
        *message.add_endpoints() = to_proto(endpoint);
    }
    for (const auto& excluded : set.excluded) {
        *message.add_excluded() = excluded_to_proto(excluded);
    }
    return message;
}

}  // namespace penstock::rpc
