// SPDX-License-Identifier: Apache-2.0
// Ownership of frontend tuples: each tuple has one owner (SVC-018). Services add their claims in any order
// and withdraw them when they are removed. The best of the current claims owns the tuple.
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

// The tuple that packets are matched by. A NodePort has no address of its own: its tuple has the unspecified
// address of its family, which no other frontend can have.
struct FrontendTuple {
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    auto operator<=>(const FrontendTuple&) const = default;
    // "203.0.113.7:80/TCP", "[2001:db8::7]:80/TCP", "IPv4 NodePort 30080/TCP".
    [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] FrontendTuple node_port_tuple(IpFamily family, L4Port port, Protocol protocol) noexcept;

// Creation time of an object, from metadata.creationTimestamp. Unknown times (absent or malformed) are equal
// to each other and younger than any known time. A manifest without a time therefore never displaces an
// object of an API server.
struct CreationTime {
    bool unknown = true;
    int64_t seconds = 0;  // since 1970-01-01T00:00:00Z
    uint32_t nanoseconds = 0;
    // RFC 3339, with any offset and fraction. Comparing the text would give the wrong order for both.
    static CreationTime parse(std::string_view text) noexcept;
    auto operator<=>(const CreationTime&) const = default;
};

// Contender::port_index of a healthCheckNodePort. It sorts after all real ports, so a Service's own NodePort
// of the same number has precedence.
inline constexpr size_t kHealthCheckIndex = std::numeric_limits<size_t>::max();

// A Service port that competes for a tuple. The smaller contender in the default order wins.
struct Contender {
    // In the order of SVC-018: C before L before X. N never competes with them, because NodePort tuples are
    // disjoint.
    lb::FrontendClass cls = lb::FrontendClass::ClusterIp;
    CreationTime created;
    kube::ObjectName service;
    size_t port_index = 0;  // among the Service's valid ports; decides a tuple that one Service names twice
    auto operator<=>(const Contender&) const = default;
    // "default/web (external IP)", "default/web (healthCheckNodePort)".
    [[nodiscard]] std::string to_string() const;
};
static_assert(lb::FrontendClass::ClusterIp < lb::FrontendClass::LoadBalancerIp);
static_assert(lb::FrontendClass::LoadBalancerIp < lb::FrontendClass::ExternalIp);

// The request of one contender for one tuple.
struct Claim {
    FrontendTuple tuple;
    Contender contender;
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
    // Adds a claim. A claim may be present at most once.
    void lay(const Claim& claim);
    // Removes a claim that was added with lay().
    void withdraw(const Claim& claim);
    // Withdraws the claims that are only in `old` and adds those that are only in `now`. Both must be sorted.
    void replace(const std::vector<Claim>& old, const std::vector<Claim>& now);

    // The owner of `tuple`, or null if it has no claims. Valid until the next change.
    [[nodiscard]] const Contender* owner_of(const FrontendTuple& tuple) const;
    // Whether a Service claims a LoadBalancer or external IP frontend on `address`. Such an address is never
    // an endpoint (EP-006). This includes claims that lost: the winner holds the same address as a VIP or a
    // ClusterIP, which is no endpoint either.
    [[nodiscard]] bool owns_vip(const IpAddr& address) const { return vips_.contains(address); }

    // The Services that claim a tuple whose owner may have changed since the last call. Services that only
    // added or withdrew claims on uncontested tuples are not included.
    [[nodiscard]] std::set<kube::ObjectName> take_contending_services();
    // Addresses for which the result of owns_vip() may have changed since the last call.
    [[nodiscard]] std::vector<IpAddr> take_changed_vips() { return std::exchange(changed_vips_, {}); }

 private:
    std::unordered_map<FrontendTuple, std::set<Contender>, FrontendTupleHash> contenders_;
    AddressCount vips_;  // one reference for each claim
    std::vector<FrontendTuple> contested_;
    std::vector<IpAddr> changed_vips_;
};

}  // namespace penstock::semantics
