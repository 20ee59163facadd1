// Makes the versions of the service table, each from the one before by what changed. Control thread only; what it hands out is for
// everybody. Whoever calls has settled conflicts: a tuple has one frontend here.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "dataplane/lb/service_table.hpp"

namespace penstock::lb {

class ServiceTableBuilder {
 public:
    // Draws the secret that tuples are hashed by, so that clients cannot learn which ones share a line. It stays for all versions.
    // A smaller memory of what is gone is for tests.
    explicit ServiceTableBuilder(size_t remembered_max = ServiceTable::kRememberedMax);

    // From the next version on `frontend` has its tuple, whoever had it, or nobody has it. At most one of the two for each tuple and
    // version: what it was in between, placement would remember. The frontend's service and set exist.
    void put(const Frontend& frontend);
    void erase(const IpAddr& address, L4Port port, Protocol protocol);

    // Whether some frontend of class L or X has this address, and whether a NodePort of this number is declared.
    void set_vip(const IpAddr& address, bool is_vip);
    void set_node_port(L4Port port, Protocol protocol, bool is_declared);

    // The addresses and ports of a Service's endpoints, of which the ports stay known, and the endpoints of its sets with SourceMode::Keep.
    // Both addresses and kept endpoints are counted, because service ports may share them. Of a service that changes, add the new version
    // before the former one is removed: what stays then does not count as gone.
    void add_backends(const Service& service);
    void remove_backends(const Service& service);

    // Takes over what `previous`, a table of another builder, has and had, as gone. Before anything else.
    void remember(const ServiceTable& previous);

    // The next version. Cost follows what was called since the last one.
    [[nodiscard]] std::shared_ptr<const ServiceTable> table();

 private:
    using HashOf = ServiceTable::HashOf;
    using KeptBackend = ServiceTable::KeptBackend;
    using RetiredFrontend = ServiceTable::RetiredFrontend;
    using Vip = ServiceTable::Vip;
    using FlowAddress = ServiceTable::FlowAddress;
    using Endpoint = ServiceTable::Endpoint;
    // What is gone, oldest first, and the departure it stands for; it is outdated where the row is back or gone anew.
    struct Departure {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        uint64_t gone_as = 0;
    };

    // What the frontends of class L and X at one address say of it together.
    struct VipFrontends {
        uint32_t usable = 0;     // with a usable endpoint
        uint32_t elsewhere = 0;  // without one here, while other nodes have some
        struct Filtered {
            std::shared_ptr<const SourceFilter> filter;
            uint32_t count = 0;
        };
        std::unordered_map<const SourceFilter*, Filtered> filters;  // null: no ranges
        bool is_other_audience = false;                             // than the version before has
        [[nodiscard]] bool is_withdrawn() const noexcept { return usable == 0 && elsewhere > 0; }
    };

    void count_in(const FrontendRow& row, const std::shared_ptr<const SourceFilter>& filter);
    void count_out(const FrontendRow& row);
    void renew_vips();
    void retire(const IpAddr& address, L4Port port, Protocol protocol, PlacementModes modes);
    static void set_bit(ServiceTable::PortBitsByProtocol& ports, L4Port port, Protocol protocol, bool is_set);
    void note_endpoints(const Service& service);
    void count_endpoints(const Service& service);
    void count_endpoints_out(const Service& service);
    // One more row, or one less, has the address.
    void add_flow_address(const IpAddr& address);
    void remove_flow_address(const IpAddr& address);
    void forget_oldest();
    [[nodiscard]] uint64_t hash(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    const size_t remembered_max_;
    HashOf hash_of_;
    SharedHash<FrontendRow, HashOf> rows_;
    SharedHash<Vip, HashOf> vips_;
    std::unordered_map<IpAddr, VipFrontends> vip_frontends_;
    std::unordered_set<IpAddr> touched_vips_;  // since the version before
    SharedHash<KeptBackend, HashOf> kept_backends_;
    SharedHash<RetiredFrontend, HashOf> retired_;
    SharedHash<FlowAddress, HashOf> flow_addresses_;
    SharedHash<Endpoint, HashOf> endpoints_;
    // In how many sets each of them is. Beside the table, so that counting up and down again copies no page that versions share.
    std::unordered_map<IpAddr, uint32_t> sets_of_endpoint_;
    ServiceTable::PortBitsByProtocol node_ports_;
    // These only grow.
    ServiceTable::PortBitsByProtocol frontend_ports_, endpoint_ports_;
    AddressFilter endpoint_addresses_;

    uint64_t departures_ = 0;
    size_t kept_gone_ = 0;  // rows of kept_backends_ that are remembered only
    std::deque<Departure> gone_kept_;
    std::deque<Departure> gone_frontends_;
};

}  // namespace penstock::lb
