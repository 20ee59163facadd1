// All Services of one snapshot and the frontends that lead to them. Built by the control thread, then read-only for every worker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/lb/row_index.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

// Which source modes a frontend has had since this process started. A flow's owner among the workers follows from the mode in force when it
// was opened, and the flow outlives a change of policy and even its frontend; so placement has to remember.
struct PlacementModes {
    bool translate_seen = false;
    bool keep_seen = false;
    SourceMode current = SourceMode::Translate;  // the last one where the frontend is gone
    [[nodiscard]] constexpr bool any() const noexcept { return translate_seen || keep_seen; }
};

// What a worker needs of a frontend, in one cache line of its own: 37 bytes do not go twice into 64, and a row across two lines costs two.
struct alignas(kCacheLine) FrontendRow {
    IpAddr address;
    const Service* service = nullptr;      // never null in a table, which keeps it alive
    const SourceFilter* filter = nullptr;  // null: everyone
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    FrontendClass cls = FrontendClass::ExternalIp;
    uint8_t set = 0;
    PlacementModes modes;
    [[nodiscard]] const BackendSet& backends() const noexcept { return service->sets[set]; }
};

class ServiceTable {
 public:
    ServiceTable() = default;  // no Services

    // Frontends must be unique by (address, port, protocol): the semantics room has settled conflicts (SVC-018). A duplicate is Internal.
    // NodePort rows rank below exact ones (NODEPORT-004): where both claim one tuple, the exact row is kept and it is no error. The same
    // NodePort of the same Service given twice for one address (it lies on two twins) is one row.
    // Control thread; draws a fresh hash key, so that clients cannot learn which tuples share a line.
    // `previous`, the table that this one replaces, hands on what placement must remember of frontends and kept backends that are gone:
    // the kRememberedMax last ones of each. Null at start.
    static Result<std::shared_ptr<const ServiceTable>> build(std::vector<Frontend> frontends,
                                                             std::vector<std::shared_ptr<const Service>> services,
                                                             const ServiceTable* previous = nullptr);
    // A day of flows (the longest idle timeout) at one frontend or endpoint gone every 1.3 s.
    static constexpr size_t kRememberedMax = 65'536;

    // The frontend of a packet's destination, or null. Nearly always one cache line where there is none, two where there is; any worker.
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port, Protocol protocol) const noexcept {
        return find(address, port, protocol, hash(address, port, protocol));
    }
    // The same in steps, for the misses of a burst: all hashes with their prefetch, then all searches. A hash is good for every question
    // of this table that takes one, and for no other table.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash(const IpAddr& address, L4Port port, Protocol protocol) const noexcept {
        return mix_.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8),
                       uint64_t{port} << 8 | static_cast<uint8_t>(protocol), 0, 0);
    }
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept { row_index_.prefetch(hash); }
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port, Protocol protocol, uint64_t hash) const noexcept;

    // True where some frontend of class L or X, whatever its port, has this address (for VipPortClosed). Such an address may be the host's
    // as well: then its other ports are the host's business (XIP-003), so ask RouteTable::is_local first.
    [[nodiscard]] bool is_vip(const IpAddr& address) const noexcept;
    // True where a NodePort frontend exists with this number and protocol on any address; SNAT leaves such ports alone.
    [[nodiscard]] bool is_node_port(L4Port port, Protocol protocol) const noexcept {
        return ((node_port_bits(protocol)[port / 64] >> (port % 64)) & 1) != 0;
    }
    // The same for all numbers at once: bit p % 64 of word p / 64 is port p; 1,024 words, never null, valid as long as the table.
    [[nodiscard]] const uint64_t* node_port_bits(Protocol protocol) const noexcept;
    // How flows to this destination were and are placed; any() is false where it never was a frontend.
    [[nodiscard]] PlacementModes placement_modes(const IpAddr& address, L4Port port, Protocol protocol) const noexcept {
        return placement_modes(address, port, protocol, hash(address, port, protocol));
    }
    [[nodiscard]] PlacementModes placement_modes(const IpAddr& address, L4Port port, Protocol protocol, uint64_t hash) const noexcept;
    // True where a backend set with SourceMode::Keep holds or held this endpoint: a packet *from* it may be the reply of a flow that is
    // placed by the client's address.
    [[nodiscard]] bool is_kept_backend(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    [[nodiscard]] const std::vector<std::shared_ptr<const Service>>& services() const noexcept { return services_; }
    [[nodiscard]] const std::vector<Frontend>& frontends() const noexcept { return frontends_; }

 private:
    struct KeptBackend {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        bool operator==(const KeptBackend&) const = default;
    };
    // A frontend that is gone.
    struct RetiredFrontend {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        PlacementModes modes;
    };
    Status add_row(const Frontend& frontend);
    void add_kept_backends(const Service& service);
    void add_kept_backend(const KeptBackend& backend);
    void remember(const ServiceTable& previous);
    void retire(const RetiredFrontend& gone);

    std::vector<Frontend> frontends_;
    std::vector<std::shared_ptr<const Service>> services_;
    KeyedMix mix_;
    std::vector<FrontendRow> rows_;
    RowIndex row_index_;
    std::vector<IpAddr> vips_;
    RowIndex vip_index_;
    // Newest first, so that the bound cuts off the oldest: those in force, then those that were.
    std::vector<KeptBackend> kept_backends_;
    RowIndex kept_index_;
    std::vector<RetiredFrontend> retired_;
    RowIndex retired_index_;
    std::array<std::vector<uint64_t>, 3> node_ports_;  // TCP, UDP, SCTP; empty where none is declared
};

}  // namespace penstock::lb
