#include "control/semantics/endpoint_selection.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "control/semantics/address_rules.hpp"
#include "control/semantics/service_port.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

std::string in_slice(const NamedSlice& slice) {
    return "EndpointSlice " + printable(slice.name) + ": ";
}

// The number that this slice gives the port, or nothing where it lacks the port. Of several good entries the first counts.
std::optional<L4Port> port_number_in(const NamedSlice& slice, const std::string& port_name, Protocol protocol, Notices& notices) {
    for (const kube::EndpointPort& entry : slice.slice->ports) {
        if (entry.name != port_name || parse_protocol(entry.protocol) != protocol) {
            continue;
        }
        if (!entry.port || *entry.port == 0) {
            notices.warn(reason::kInvalidPort,
                         in_slice(slice) + "port " + quoted(entry.name) + " has no number; \"all ports\" is not supported");
        } else if (!is_l4_port(*entry.port)) {
            notices.warn(reason::kInvalidPort,
                         in_slice(slice) + "port " + quoted(entry.name) + " is " + std::to_string(*entry.port) + ", not in 1-65535");
        } else {
            return static_cast<L4Port>(*entry.port);
        }
    }
    return std::nullopt;
}

// addresses[0] and no other (EP-005).
std::optional<IpAddr> address_of(const kube::Endpoint& endpoint, IpFamily family, const NamedSlice& slice, Notices& notices) {
    if (endpoint.address.is_absent()) {
        notices.warn(reason::kInvalidEndpointAddress, in_slice(slice) + "an endpoint has no address");
        return std::nullopt;
    }
    const std::optional<IpAddr>& address = endpoint.address.ip();
    if (!address) {
        const std::string why = IpAddr::parse(endpoint.address.bad_text()).error().what;
        notices.warn(reason::kInvalidEndpointAddress, in_slice(slice) + printable(why, 2 * kShownCharsMax));
        return std::nullopt;
    }
    if (address->family() != family) {
        notices.warn(reason::kInvalidEndpointAddress,
                     in_slice(slice) + address->to_string() + " does not belong in a slice of addressType " + to_string(family));
        return std::nullopt;
    }
    return *address;
}

Candidates of_readiness(const Candidates& candidates, Readiness readiness) {
    Candidates chosen;
    std::ranges::copy_if(candidates, std::back_inserter(chosen), [readiness](const Candidate& one) { return one.readiness == readiness; });
    return chosen;
}

}  // namespace

Candidates merged_endpoints(std::span<const NamedSlice> slices, const std::string& port_name, Protocol protocol, IpFamily family,
                            Notices& notices) {
    Candidates merged;
    for (const NamedSlice& slice : slices) {
        if (slice.slice->address_type != to_string(family)) {
            continue;
        }
        const auto port = port_number_in(slice, port_name, protocol, notices);
        if (!port) {
            continue;
        }
        for (const kube::Endpoint& endpoint : slice.slice->endpoints) {
            if (const auto address = address_of(endpoint, family, slice, notices)) {
                merged.push_back({.address = *address, .port = *port, .readiness = readiness_of(endpoint), .endpoint = &endpoint});
            }
        }
    }
    // Stable: equals stay in the order of their slices' names.
    std::ranges::stable_sort(merged, {},
                             [](const Candidate& candidate) { return std::tuple(candidate.address, candidate.port, candidate.readiness); });
    const auto [first, last] =
        std::ranges::unique(merged, {}, [](const Candidate& candidate) { return std::tuple(candidate.address, candidate.port); });
    merged.erase(first, last);
    return merged;
}

void drop_forbidden(Candidates& candidates, const AddressCount& cluster_ips, const FrontendOwners& owners, Notices& notices) {
    std::erase_if(candidates, [&](const Candidate& candidate) {
        std::string_view why = unfit_as_endpoint(candidate.address);
        if (why.empty() && cluster_ips.contains(candidate.address)) {
            why = "the ClusterIP of a Service";
        }
        if (why.empty() && owners.owns_vip(candidate.address)) {
            why = "a LoadBalancer or external IP of this gateway";
        }
        if (why.empty()) {
            return false;
        }
        notices.warn(reason::kInvalidEndpointAddress,
                     "endpoint " + candidate.address.to_string() + " is " + std::string(why) + " and is skipped");
        return true;
    });
}

Candidates cluster_set(const Candidates& candidates) {
    Candidates ready = of_readiness(candidates, Readiness::Ready);
    return ready.empty() ? of_readiness(candidates, Readiness::Terminating) : ready;
}

Candidates local_set(const Candidates& candidates, const std::string& node_name) {
    Candidates local;
    if (!node_name.empty()) {
        std::ranges::copy_if(candidates, std::back_inserter(local),
                             [&](const Candidate& candidate) { return candidate.endpoint->node_name == node_name; });
    }
    return cluster_set(local);
}

}  // namespace penstock::semantics
