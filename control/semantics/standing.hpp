// Whether a Service may have frontends at all, and of which families: the questions before any port or address is looked at (SVC-001..005,
// DUAL-001).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

enum class ServiceType : uint8_t { ClusterIp, NodePort, LoadBalancer, ExternalName };

// A type that we do not know is served as what all types have in common, ClusterIP, and said so (GEN-002).
[[nodiscard]] ServiceType type_of(const kube::Service& service, Notices& notices);

// The others' nodePorts are left over from another type.
[[nodiscard]] constexpr bool has_node_ports(ServiceType type) noexcept {
    return type == ServiceType::NodePort || type == ServiceType::LoadBalancer;
}

enum class Standing : uint8_t {
    Served,
    Ignored,  // labelled as another proxy's (SVC-004) or as headless (SVC-005): not ours, so not a word about it
    BadName,           // no API server would accept it, and no message could carry it
    ExternalName,      // SVC-003
    Headless,          // clusterIP None (SVC-002)
    AwaitsClusterIp,   // clusterIP still empty, and somebody will fill it in (SVC-002)
    InvalidClusterIp,  // clusterIP is no address
};

[[nodiscard]] Standing standing_of(const kube::ObjectName& name, const kube::Service& service,
                                   const Policy& policy);

// Why a Service of this standing gets no frontends, as a sentence for a notice; "" for Served and Ignored.
[[nodiscard]] std::string_view explanation(Standing standing) noexcept;

// The addresses the cluster has allocated to this Service, whether or not anybody serves them (SVC-014). What an ExternalName still shows
// is stale: the API server has freed it.
[[nodiscard]] std::vector<IpAddr> cluster_ips_of(const kube::Service& service);

struct Families {
    bool v4 = false;
    bool v6 = false;
    [[nodiscard]] bool has(IpFamily family) const noexcept { return family == IpFamily::V4 ? v4 : v6; }
    [[nodiscard]] static constexpr Families both() noexcept { return {.v4 = true, .v6 = true}; }
    void add(IpFamily family) noexcept { (family == IpFamily::V4 ? v4 : v6) = true; }
    [[nodiscard]] bool none() const noexcept { return !v4 && !v6; }
    bool operator==(const Families&) const = default;
};

// ipFamilies, or the families of its ClusterIPs (DUAL-001). A manifest may name neither, because no server will allocate: then the external
// and ingress addresses that it names speak for it, and IPv4 where it names none. Never none.
[[nodiscard]] Families families_of(const kube::Service& service, Notices& notices);

}  // namespace penstock::semantics
