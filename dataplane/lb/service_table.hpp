// The frontends of one snapshot and what leads from them to Services. Made by the control thread (service_table_builder.hpp), then
// read-only for every worker. A version shares with its predecessor whatever did not change, so a change costs kilobytes at any size.
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

// Which source modes a frontend has had since this process started. A flow's owner among the workers follows from the mode in force when it
// was opened, and the flow outlives a change of policy and even its frontend; so placement has to remember.
struct SourceModes {
    bool translate_seen = false;
    bool keep_seen = false;
    SourceMode current = SourceMode::Translate;  // the last one where the frontend is gone
    [[nodiscard]] constexpr bool any() const noexcept { return translate_seen || keep_seen; }
    constexpr bool operator==(const SourceModes&) const = default;
};
// Those for clients outside the cluster, and for those inside; nearly always the same.
struct PlacementModes : SourceModes {
    SourceModes inside;
    [[nodiscard]] constexpr bool ask_for_client() const noexcept {
        return inside != static_cast<const SourceModes&>(*this);
    }
};

// What a worker needs of a frontend, in one cache line of its own: a row across two lines costs two.
struct alignas(kCacheLine) FrontendRow {
    IpAddr address;
    const Service* service = nullptr;      // never null in a table
    const SourceFilter* filter = nullptr;  // null: everyone
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    FrontendClass cls = FrontendClass::ExternalIp;
    uint8_t set = 0;
    uint8_t inside_set = 0;  // for clients inside the cluster; nearly always the same
    PlacementModes modes;
    std::shared_ptr<const void>
        owner;  // keeps service and filter alive; not for workers, who would share its count
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

    // A table from nothing, for whoever has no builder to keep. Frontends must be unique by (address, port, protocol): the semantics room
    // has settled conflicts (SVC-018). A duplicate is Internal. NodePort rows rank below exact ones (NODEPORT-004): where both claim one
    // tuple, the exact row is kept and it is no error. The same NodePort of the same Service given twice for one address (it lies on two
    // twins) is one row. `services`: those whose endpoints may be kept backends. `previous`, the table that this one replaces, hands on
    // what placement must remember of frontends and kept backends that are gone. Null at start.
    static Result<std::shared_ptr<const ServiceTable>> build(
        const std::vector<Frontend>& frontends, const std::vector<std::shared_ptr<const Service>>& services,
        const ServiceTable* previous = nullptr);
    // How many frontends and kept backends that are gone are remembered, the last ones of each: a day of flows (the longest idle timeout)
    // at one gone every 1.3 s.
    static constexpr size_t kRememberedMax = 65'536;

    // The frontend of a packet's destination, or null. Nearly always one cache line where there is none, two where there is; any worker.
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port,
                                          Protocol protocol) const noexcept {
        return find(address, port, protocol, hash(address, port, protocol));
    }
    // The same in steps, for the misses of a burst: all hashes with their prefetch, then all searches. A hash is good for every question
    // of this table that takes one, and for no other table.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash(const IpAddr& address, L4Port port,
                                                       Protocol protocol) const noexcept {
        return mix_.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8),
                       uint64_t{port} << 8 | static_cast<uint8_t>(protocol), 0, 0);
    }
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept { rows_.prefetch(hash); }
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port, Protocol protocol,
                                          uint64_t hash) const noexcept;

    // True where some frontend of class L or X, whatever its port, has this address (for VipPortClosed). Such an address may be the host's
    // as well: then its other ports are the host's business (XIP-003), so ask RouteTable::is_local first.
    [[nodiscard]] bool is_vip(const IpAddr& address) const noexcept;
    // What an echo request from `client` to a VIP gets, as far as Services have a say. One that is withdrawn has frontends, but no usable
    // endpoint here, while another node has some (LB-018).
    enum class Echo : uint8_t { Answer, Withdrawn, NotAllowed };
    [[nodiscard]] Echo echo(const IpAddr& vip, const IpAddr& client) const noexcept;
    // True where some frontend of any class has this address, or an endpoint that is_kept_backend() with some port; now, or as long as
    // placement remembers it: only then can a packet without ports be to the one, or from the other.
    [[nodiscard]] bool is_flow_address(const IpAddr& address) const noexcept;
    // True where a NodePort frontend exists with this number and protocol on any address; SNAT leaves such ports alone.
    [[nodiscard]] bool is_node_port(L4Port port, Protocol protocol) const noexcept {
        return ((node_port_bits(protocol)[port / 64] >> (port % 64)) & 1) != 0;
    }
    // The same for all numbers at once: bit p % 64 of word p / 64 is port p; 1,024 words, never null, valid as long as the table.
    [[nodiscard]] const uint64_t* node_port_bits(Protocol protocol) const noexcept;
    // True where a frontend of this tuple exists; a question that a packet's source hardly ever answers with yes. Most ports have never
    // been a frontend's since this process started, and tell so by one bit.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_frontend(const IpAddr& address, L4Port port,
                                                          Protocol protocol) const noexcept {
        return has_bit(frontend_ports_, port, protocol) && find(address, port, protocol) != nullptr;
    }
    // True where some Service has an endpoint with this port, whatever its address, or had one since this process started: only then can a
    // packet from that port be an endpoint's.
    [[nodiscard]] bool is_endpoint_port(L4Port port, Protocol protocol) const noexcept {
        return has_bit(endpoint_ports_, port, protocol);
    }
    // False where no Service has an endpoint with this address, or had one since this process started. Of others it may be true as well:
    // among thousands of endpoints it nearly always is.
    [[nodiscard]] bool may_be_endpoint(const IpAddr& address) const noexcept {
        return endpoint_addresses_.may_hold(address);
    }
    // True where some Service offers an endpoint with this address to new flows.
    [[nodiscard]] bool is_endpoint(const IpAddr& address) const noexcept;
    // How flows to this destination were and are placed; any() is false where it never was a frontend.
    [[nodiscard]] PlacementModes placement_modes(const IpAddr& address, L4Port port,
                                                 Protocol protocol) const noexcept {
        return placement_modes(address, port, protocol, hash(address, port, protocol));
    }
    [[nodiscard]] PlacementModes placement_modes(const IpAddr& address, L4Port port, Protocol protocol,
                                                 uint64_t hash) const noexcept;
    // True where a backend set with SourceMode::Keep holds or held this endpoint: a packet *from* it may be the reply of a flow that is
    // placed by the client's address.
    [[nodiscard]] bool is_kept_backend(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    // In no order. NodePort rows that an exact frontend hides are not there.
    template <typename Visit>
    void for_each_row(Visit&& visit) const {
        rows_.for_each(visit);
    }

 private:
    friend class ServiceTableBuilder;

    struct Vip {
        IpAddr address;
        bool is_withdrawn = false;
        std::shared_ptr<const VipAudience> audience;  // null: nobody
    };
    struct FlowAddress {
        IpAddr address;
        uint32_t rows = 0;  // frontends and kept backends that have it, remembered ones included
    };
    // An endpoint that some Service keeps clients' addresses for, or did.
    struct KeptBackend {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        uint32_t sets = 0;     // that hold it now; 0: remembered
        uint64_t gone_as = 0;  // tells this departure from earlier ones
    };
    // A frontend that is gone.
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
    // Every question of a table is hashed by one secret.
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
    using PortBitsByProtocol =
        std::array<std::shared_ptr<const PortBits>, 3>;  // TCP, UDP, SCTP; null: no port has its bit set
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
    PortBitsByProtocol frontend_ports_;  // of all classes, those that are gone included
    PortBitsByProtocol endpoint_ports_;  // likewise
    AddressFilter endpoint_addresses_;   // likewise
};

}  // namespace penstock::lb
