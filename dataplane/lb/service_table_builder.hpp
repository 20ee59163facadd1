// SPDX-License-Identifier: Apache-2.0
// Builds the versions of the service table, each from the preceding one and the changes. Control thread only;
// any thread may use the tables it returns. The caller has resolved conflicts: a tuple has one frontend here.
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
    // Draws the secret for hashing tuples, so that clients cannot find out which tuples share a cache line.
    // All versions use the same secret. Tests use a smaller `remembered_max`.
    explicit ServiceTableBuilder(size_t remembered_max = ServiceTable::kRememberedMax);

    // From the next version on, the tuple belongs to `frontend`, even if it belonged to another one (put), or
    // to no frontend (erase). At most one call of the two for each tuple and version: otherwise placement
    // would record the intermediate mode. The frontend's service and set exist.
    void put(const Frontend& frontend);
    void erase(const IpAddr& address, L4Port port, Protocol protocol);

    // Sets whether a frontend of class LoadBalancerIp or ExternalIp has this address, and whether a NodePort
    // of this number is declared.
    void set_vip(const IpAddr& address, bool is_vip);
    void set_node_port(L4Port port, Protocol protocol, bool is_declared);

    // Adds or removes the addresses and ports of a Service's endpoints (ports stay known after removal), and
    // the endpoints of its sets with SourceMode::Keep. Addresses and kept endpoints are counted, because
    // service ports may share them. If a service changes, add the new version before removing the old one:
    // endpoints in both then do not count as removed.
    void add_backends(const Service& service);
    void remove_backends(const Service& service);

    // Takes over the current and removed frontends of `previous`, a table of another builder, as removed.
    // Call before any other function.
    void remember(const ServiceTable& previous);

    // The next version. Its cost depends on the number of calls since the last one.
    [[nodiscard]] std::shared_ptr<const ServiceTable> table();

 private:
    using HashOf = ServiceTable::HashOf;
    using KeptBackend = ServiceTable::KeptBackend;
    using RetiredFrontend = ServiceTable::RetiredFrontend;
    using Vip = ServiceTable::Vip;
    using FlowAddress = ServiceTable::FlowAddress;
    using Endpoint = ServiceTable::Endpoint;
    // A removal, in order from the oldest. It is outdated if the row is present again or was removed once
    // more.
    struct Departure {
        IpAddr address;
        L4Port port = 0;
        Protocol protocol = Protocol::Tcp;
        uint64_t gone_as = 0;
    };

    // Summary of the LoadBalancerIp and ExternalIp frontends at one address.
    struct VipFrontends {
        uint32_t usable = 0;     // with a usable endpoint
        uint32_t elsewhere = 0;  // without a usable endpoint here, while other nodes have some
        struct Filtered {
            std::shared_ptr<const SourceFilter> filter;
            uint32_t count = 0;
        };
        std::unordered_map<const SourceFilter*, Filtered> filters;  // null: no ranges
        bool is_other_audience = false;                             // differs from the preceding version's
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
    // Counts one row more, or one less, with the address.
    void add_flow_address(const IpAddr& address);
    void remove_flow_address(const IpAddr& address);
    void forget_oldest();
    [[nodiscard]] uint64_t hash(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    const size_t remembered_max_;
    HashOf hash_of_;
    SharedHash<FrontendRow, HashOf> rows_;
    SharedHash<Vip, HashOf> vips_;
    std::unordered_map<IpAddr, VipFrontends> vip_frontends_;
    std::unordered_set<IpAddr> touched_vips_;  // since the preceding version
    SharedHash<KeptBackend, HashOf> kept_backends_;
    SharedHash<RetiredFrontend, HashOf> retired_;
    SharedHash<FlowAddress, HashOf> flow_addresses_;
    SharedHash<Endpoint, HashOf> endpoints_;
    // Number of sets that contain each endpoint address. Kept outside the table, so that counting up and down
    // does not copy pages that versions share.
    std::unordered_map<IpAddr, uint32_t> sets_of_endpoint_;
    ServiceTable::PortBitsByProtocol node_ports_;
    // These only grow.
    ServiceTable::PortBitsByProtocol frontend_ports_, endpoint_ports_;
    AddressFilter endpoint_addresses_;

    uint64_t departures_ = 0;
    size_t kept_gone_ = 0;  // rows of kept_backends_ that are only remembered
    std::deque<Departure> gone_kept_;
    std::deque<Departure> gone_frontends_;
};

}  // namespace penstock::lb
