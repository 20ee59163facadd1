// SPDX-License-Identifier: Apache-2.0
// The frontends of one snapshot, with their Services. Built by the control thread
// (service_table_builder.hpp), then read-only for all workers. A version shares all unchanged pages with its
// predecessor, so a change costs kilobytes at any size.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/address_filter.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/lb/cluster_clients.hpp"
#include "dataplane/lb/service.hpp"
#include "dataplane/lb/shared_hash.hpp"
#include "dataplane/lb/vip_audience.hpp"

namespace penstock::lb {

// The source modes that a frontend has had since this process started. A flow's owner worker depends on the
// mode in force when the flow was opened, and the flow may outlive a policy change or the frontend itself. So
// placement needs the earlier modes.
struct SourceModes {
    bool translate_seen = false;
    bool keep_seen = false;
    SourceMode current = SourceMode::Translate;  // the last one, if the frontend is gone
    [[nodiscard]] constexpr bool any() const noexcept { return translate_seen || keep_seen; }
    constexpr bool operator==(const SourceModes&) const = default;
};
// The modes for clients outside the cluster, and for those inside; nearly always equal.
struct PlacementModes : SourceModes {
    SourceModes inside;
    [[nodiscard]] constexpr bool ask_for_client() const noexcept {
        return inside != static_cast<const SourceModes&>(*this);
    }
};

// The fields of a frontend that workers need, in one cache line of its own: a row across two lines would cost
// two accesses.
struct alignas(kCacheLine) FrontendRow {
    IpAddr address;
    const Service* service = nullptr;      // never null in a table
    const SourceFilter* filter = nullptr;  // null: allows every client
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    FrontendClass cls = FrontendClass::ExternalIp;
    uint8_t set = 0;
    uint8_t inside_set = 0;  // for clients inside the cluster; nearly always equal to `set`
    PlacementModes modes;
    uint8_t snat_group = 0;  // nat::SnatAddress::group for its new flows
    // Keeps service and filter alive. Workers must not copy it: they would contend for its reference count.
    std::shared_ptr<const void> owner;
    [[nodiscard]] const BackendSet& backends() const noexcept { return service->sets[set]; }
    [[nodiscard]] const BackendSet& backends(const IpAddr& client,
                                             const ClusterClients& cluster) const noexcept {
        return service->sets[inside_set == set || !cluster.are_inside(client) ? set : inside_set];
    }
};
static_assert(sizeof(FrontendRow) == kCacheLine);

class ServiceTable {
 public:
    ServiceTable() = default;  // no Services

    // Builds a table from scratch, for callers that keep no builder. Frontends must be unique by (address,
    // port, protocol): the semantics room has resolved conflicts (SVC-018). A duplicate is Internal. NodePort
    // rows rank below exact ones (NODEPORT-004): if both claim one tuple, the exact row is used, without an
    // error. The same NodePort of the same Service given twice for one address (an address on two twins) is
    // one row.
    // `services`: the Services whose endpoints may be kept backends. `previous`: the table that this one
    // replaces. Frontends and kept backends that are gone are taken over from it, because placement needs
    // them. Null at start.
    static Result<std::shared_ptr<const ServiceTable>> build(
        const std::vector<Frontend>& frontends, const std::vector<std::shared_ptr<const Service>>& services,
        const ServiceTable* previous = nullptr);
    // Maximum number of removed frontends, and of removed kept backends, that are remembered; the oldest are
    // forgotten first. It is one day (the longest idle timeout) at one removal every 1.3 s.
    static constexpr size_t kRememberedMax = 65'536;

    // The frontend of a packet's destination, or null. Nearly always reads one cache line if there is none,
    // two if there is one. Any worker.
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port,
                                          Protocol protocol) const noexcept {
        return find(address, port, protocol, hash(address, port, protocol));
    }
    // The same in steps, for the misses of a burst: first all hashes with their prefetch, then all searches.
    // A hash is valid for all functions of this table that take one, and for no other table.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash(const IpAddr& address, L4Port port,
                                                       Protocol protocol) const noexcept {
        return mix_.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8),
                       uint64_t{port} << 8 | static_cast<uint8_t>(protocol), 0, 0);
    }
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept { rows_.prefetch(hash); }
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port, Protocol protocol,
                                          uint64_t hash) const noexcept;

    // True if a frontend of class LoadBalancerIp or ExternalIp, with any port, has this address (for
    // VipPortClosed). The address may also be the host's. Then its other ports belong to the host (XIP-003),
    // so call RouteTable::is_local() first.
    [[nodiscard]] bool is_vip(const IpAddr& address) const noexcept;
    // The Services' decision about an echo request from `client` to a VIP. A withdrawn VIP has frontends, but
    // no usable endpoint here, while another node has some (LB-018).
    enum class Echo : uint8_t { Answer, Withdrawn, NotAllowed };
    [[nodiscard]] Echo echo(const IpAddr& vip, const IpAddr& client) const noexcept;
    // True if a frontend of any class has this address, or an endpoint for which is_kept_backend() is true
    // with some port; now, or as long as placement keeps a record of it. Otherwise a packet without ports
    // cannot be to such a frontend or from such an endpoint.
    [[nodiscard]] bool is_flow_address(const IpAddr& address) const noexcept;
    // True if a NodePort frontend with this number and protocol exists on any address; SNAT does not use such
    // ports.
    [[nodiscard]] bool is_node_port(L4Port port, Protocol protocol) const noexcept {
        return ((node_port_bits(protocol)[port / 64] >> (port % 64)) & 1) != 0;
    }
    // The same for all numbers at once: bit p % 64 of word p / 64 is port p; 1,024 words, never null, valid
    // as long as the table.
    [[nodiscard]] const uint64_t* node_port_bits(Protocol protocol) const noexcept;
    // True if a frontend of this tuple exists. For the source of a packet the result is almost always false.
    // Most ports have never been a frontend's since this process started, and one bit shows this.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_frontend(const IpAddr& address, L4Port port,
                                                          Protocol protocol) const noexcept {
        return has_bit(frontend_ports_, port, protocol) && find(address, port, protocol) != nullptr;
    }
    // True if a Service has, or had since this process started, an endpoint with this port on any address.
    // Otherwise a packet from that port cannot be from an endpoint.
    [[nodiscard]] bool is_endpoint_port(L4Port port, Protocol protocol) const noexcept {
        return has_bit(endpoint_ports_, port, protocol);
    }
    // False if no Service has, or had since this process started, an endpoint with this address. May be true
    // for other addresses: with thousands of endpoints it nearly always is.
    [[nodiscard]] bool may_be_endpoint(const IpAddr& address) const noexcept {
        return endpoint_addresses_.may_hold(address);
    }
    // True if a Service offers an endpoint with this address to new flows.
    [[nodiscard]] bool is_endpoint(const IpAddr& address) const noexcept;
    // The modes by which flows to this destination are and were placed; any() is false if it never was a
    // frontend.
    [[nodiscard]] PlacementModes placement_modes(const IpAddr& address, L4Port port,
                                                 Protocol protocol) const noexcept {
        return may_be_placed(port, protocol)
                   ? placement_modes(address, port, protocol, hash(address, port, protocol))
                   : PlacementModes{};
    }
    // True if a frontend with this port exists, or existed since this process started, on any address.
    // Otherwise no placement_modes() of the port are any(). False for most SNAT ports.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool may_be_placed(L4Port port, Protocol protocol) const noexcept {
        return has_bit(frontend_ports_, port, protocol);
    }
    [[nodiscard]] PlacementModes placement_modes(const IpAddr& address, L4Port port, Protocol protocol,
                                                 uint64_t hash) const noexcept;
    // True if a backend set with SourceMode::Keep contains or contained this endpoint. A packet *from* it may
    // be the reply of a flow that is placed by the client's address.
    [[nodiscard]] bool is_kept_backend(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    // In no particular order. NodePort rows hidden by an exact frontend are not included.
    template <typename Visit>
    void for_each_row(Visit&& visit) const {
        rows_.for_each(visit);
    }

 private:
    friend class ServiceTableBuilder;

    struct Vip {
        IpAddr address;
        bool is_withdrawn = false;
        std::shared_ptr<const VipAudience> audience;  // null: no client
    };
    struct FlowAddress {
        IpAddr address;
        uint32_t rows = 0;  // frontends and kept backends with this address, remembered ones included
    };
    // An endpoint for which a Service keeps or kept clients' addresses.
    struct KeptBackend {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        uint32_t sets = 0;     // number of sets that contain it now; 0: remembered only
        uint64_t gone_as = 0;  // number of this removal, to distinguish it from earlier ones
    };
    // A removed frontend.
    struct RetiredFrontend {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        PlacementModes modes;
        uint64_t gone_as = 0;
    };
    struct Endpoint {
        IpAddr address;
    };
    // All lookups of a table use one hash secret.
    struct HashOf {
        KeyedMix mix;
        [[nodiscard]] uint64_t operator()(const IpAddr& address) const noexcept {
            return mix.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8));
        }
        [[nodiscard]] uint64_t operator()(const Vip& row) const noexcept { return (*this)(row.address); }
        [[nodiscard]] uint64_t operator()(const FlowAddress& row) const noexcept {
            return (*this)(row.address);
        }
        [[nodiscard]] uint64_t operator()(const Endpoint& row) const noexcept { return (*this)(row.address); }
        template <typename Row>
        [[nodiscard]] uint64_t operator()(const Row& row) const noexcept {
            return mix.of(load<uint64_t>(row.address.bytes().data()),
                          load<uint64_t>(row.address.bytes().data() + 8),
                          uint64_t{row.port} << 8 | static_cast<uint8_t>(row.protocol), 0, 0);
        }
    };
    using PortBits = std::array<uint64_t, 65'536 / 64>;
    // TCP, UDP, SCTP; null: no port has its bit set.
    using PortBitsByProtocol = std::array<std::shared_ptr<const PortBits>, 3>;
    static constexpr size_t protocol_index(Protocol protocol) noexcept {
        return protocol == Protocol::Tcp ? 0 : protocol == Protocol::Udp ? 1 : 2;
    }
    static PENSTOCK_ALWAYS_INLINE bool has_bit(const PortBitsByProtocol& ports, L4Port port,
                                               Protocol protocol) noexcept {
        const PortBits* bits = ports[protocol_index(protocol)].get();
        return bits != nullptr && (((*bits)[port / 64] >> (port % 64)) & 1) != 0;
    }

    KeyedMix mix_;
    SharedHash<FrontendRow, HashOf>::View rows_;
    SharedHash<Vip, HashOf>::View vips_;
    SharedHash<KeptBackend, HashOf>::View kept_backends_;
    SharedHash<RetiredFrontend, HashOf>::View retired_;
    SharedHash<FlowAddress, HashOf>::View flow_addresses_;
    SharedHash<Endpoint, HashOf>::View endpoints_;
    PortBitsByProtocol node_ports_;
    PortBitsByProtocol frontend_ports_;  // of all classes, including removed ones
    PortBitsByProtocol endpoint_ports_;  // including removed ones
    AddressFilter endpoint_addresses_;   // including removed ones
};

}  // namespace penstock::lb
