// One frontend tuple has one owner (SVC-018). Every Service lays its claims here, in any order, and withdraws them when it goes: the best
// claim that is left owns the tuple.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/address_count.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::semantics {

// What a packet is matched by. A NodePort has no address of its own: its tuple carries the unspecified address of its family, which no
// other frontend can have.
struct FrontendTuple {
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    auto operator<=>(const FrontendTuple&) const = default;
    // "203.0.113.7:80/TCP", "[2001:db8::7]:80/TCP", "IPv4 NodePort 30080/TCP".
    [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] FrontendTuple node_port_tuple(IpFamily family, L4Port port, Protocol protocol) noexcept;

// When an object was created, as metadata.creationTimestamp says it. Unknown times, absent or unreadable, equal each other and are younger
// than any known one: a manifest never pushes out what an API server vouches for.
struct CreationTime {
    bool unknown = true;
    int64_t seconds = 0;  // since 1970-01-01T00:00:00Z
    uint32_t nanoseconds = 0;
    // RFC 3339, with any offset and fraction; text order would fail on both.
    static CreationTime parse(std::string_view text) noexcept;
    auto operator<=>(const CreationTime&) const = default;
};

// Claimant::port_index of a healthCheckNodePort: after all real ports, so that a Service's own NodePort of the same number comes first.
inline constexpr size_t kHealthCheckIndex = std::numeric_limits<size_t>::max();

// One claim on a tuple. Orders itself: the smaller claim wins.
struct Claimant {
    // In the order of SVC-018: C before L before X. N never meets the others, because its tuples are its own.
    lb::FrontendClass cls = lb::FrontendClass::ClusterIp;
    CreationTime created;
    kube::ObjectName service;
    size_t port_index = 0;  // among the Service's good ports; settles a tuple that one Service names twice
    auto operator<=>(const Claimant&) const = default;
    // "default/web (external IP)", "default/web (healthCheckNodePort)".
    [[nodiscard]] std::string to_string() const;
};
static_assert(lb::FrontendClass::ClusterIp < lb::FrontendClass::LoadBalancerIp);
static_assert(lb::FrontendClass::LoadBalancerIp < lb::FrontendClass::ExternalIp);

struct Claim {
    FrontendTuple tuple;
    Claimant claimant;
    auto operator<=>(const Claim&) const = default;
};

struct FrontendTupleHash {
    size_t operator()(const FrontendTuple& tuple) const noexcept {
        return std::hash<IpAddr>{}(tuple.address) ^
               (((size_t{tuple.port} << 8) | static_cast<size_t>(tuple.protocol)) * 0x9e3779b97f4a7c15ULL);
    }
};

class FrontendOwners {
 public:
    // Each claim at most once at a time.
    void lay(const Claim& claim);
    // One that was laid.
    void withdraw(const Claim& claim);
    // Withdraws what is only in `old`, lays what is only in `now`. Both sorted.
    void replace(const std::vector<Claim>& old, const std::vector<Claim>& now);

    // Null where nobody claims it. Valid until the next change.
    [[nodiscard]] const Claimant* owner_of(const FrontendTuple& tuple) const;
    // Whether some Service claims a LoadBalancer or external IP frontend on `address`: never an endpoint then (EP-006). Also where the
    // claim loses: whoever wins holds the same address, as a VIP or as a ClusterIP, which is no endpoint either.
    [[nodiscard]] bool owns_vip(const IpAddr& address) const { return vips_.contains(address); }

    // The Services that claim a tuple whose owner may be another than at the last call. Whoever laid or withdrew a claim alone is not
    // among them.
    [[nodiscard]] std::set<kube::ObjectName> take_contenders();
    // Addresses of which owns_vip() may answer otherwise than at the last call.
    [[nodiscard]] std::vector<IpAddr> take_changed_vips() { return std::exchange(changed_vips_, {}); }

 private:
    std::unordered_map<FrontendTuple, std::set<Claimant>, FrontendTupleHash> claimants_;
    AddressCount vips_;  // one for each claim
    std::vector<FrontendTuple> contested_;
    std::vector<IpAddr> changed_vips_;
};

}  // namespace penstock::semantics
