// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/service_table.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "dataplane/lb/service_table_builder.hpp"

namespace penstock::lb {
namespace {

std::string describe(const Frontend& frontend) {
    return std::string(penstock::to_string(frontend.protocol)) + " " + frontend.address.to_string() +
           " port " + std::to_string(frontend.port);
}

template <typename Row>
bool is_at(const Row& row, const IpAddr& address, L4Port port, Protocol protocol) noexcept {
    return row.address == address && row.port == port && row.protocol == protocol;
}

}  // namespace

Result<std::shared_ptr<const ServiceTable>> ServiceTable::build(
    const std::vector<Frontend>& frontends, const std::vector<std::shared_ptr<const Service>>& services,
    const ServiceTable* previous) {
    ServiceTableBuilder builder;
    if (previous != nullptr) {
        builder.remember(*previous);
    }
    std::map<std::tuple<IpAddr, L4Port, Protocol>, const Frontend*> placed;
    // Exact rows first: a NodePort row is then skipped if its tuple is already in use (NODEPORT-004).
    for (const bool node_ports : {false, true}) {
        for (const Frontend& frontend : frontends) {
            if ((frontend.cls == FrontendClass::NodePort) != node_ports) {
                continue;
            }
            if (frontend.service == nullptr ||
                std::max(frontend.set, frontend.inside_set.value_or(0)) >= frontend.service->sets.size()) {
                return fail(Errc::Internal,
                            "frontend " + describe(frontend) + " refers to no backend set of a service");
            }
            const auto [present, is_new] =
                placed.try_emplace({frontend.address, frontend.port, frontend.protocol}, &frontend);
            const Frontend& owner = *present->second;
            const bool outranked = node_ports && owner.cls != FrontendClass::NodePort;
            const bool repeated = node_ports && owner.service == frontend.service &&
                                  owner.set == frontend.set && owner.inside_set == frontend.inside_set;
            if (!is_new && !outranked && !repeated) {
                return fail(Errc::Internal, "frontend " + describe(frontend) + " is claimed by service " +
                                                owner.service->display_name() + " and by service " +
                                                frontend.service->display_name());
            }
            if (is_new) {
                builder.put(frontend);
            }
            if (node_ports) {
                // Declared, even if an exact row hides it.
                builder.set_node_port(frontend.port, frontend.protocol, true);
            } else if (frontend.cls != FrontendClass::ClusterIp) {
                builder.set_vip(frontend.address, true);
            }
        }
    }
    for (const auto& service : services) {
        builder.add_backends(*service);
    }
    return builder.table();
}

PlacementModes ServiceTable::placement_modes(const IpAddr& address, L4Port port, Protocol protocol,
                                             uint64_t hash) const noexcept {
    if (const FrontendRow* row = find(address, port, protocol, hash)) {
        return row->modes;
    }
    const RetiredFrontend* gone = retired_.find(hash, [&](const RetiredFrontend& row) PENSTOCK_INLINE_LAMBDA {
        return is_at(row, address, port, protocol);
    });
    return gone == nullptr ? PlacementModes{} : gone->modes;
}

const FrontendRow* ServiceTable::find(const IpAddr& address, L4Port port, Protocol protocol,
                                      uint64_t hash) const noexcept {
    return rows_.find(hash, [&](const FrontendRow& row)
                                PENSTOCK_INLINE_LAMBDA { return is_at(row, address, port, protocol); });
}

bool ServiceTable::is_vip(const IpAddr& address) const noexcept {
    return vips_.find(HashOf{mix_}(address), [&](const Vip& row) { return row.address == address; }) !=
           nullptr;
}

ServiceTable::Echo ServiceTable::echo(const IpAddr& vip, const IpAddr& client) const noexcept {
    const Vip* row = vips_.find(HashOf{mix_}(vip), [&](const Vip& each) { return each.address == vip; });
    if (row == nullptr || row->audience == nullptr || !row->audience->includes(client)) {
        return Echo::NotAllowed;
    }
    return row->is_withdrawn ? Echo::Withdrawn : Echo::Answer;
}

bool ServiceTable::is_flow_address(const IpAddr& address) const noexcept {
    return flow_addresses_.find(HashOf{mix_}(address),
                                [&](const FlowAddress& row) { return row.address == address; }) != nullptr;
}

bool ServiceTable::is_endpoint(const IpAddr& address) const noexcept {
    return endpoints_.find(HashOf{mix_}(address),
                           [&](const Endpoint& row) { return row.address == address; }) != nullptr;
}

bool ServiceTable::is_kept_backend(const IpAddr& address, L4Port port, Protocol protocol) const noexcept {
    return kept_backends_.find(hash(address, port, protocol), [&](const KeptBackend& row) {
        return is_at(row, address, port, protocol);
    }) != nullptr;
}

const uint64_t* ServiceTable::node_port_bits(Protocol protocol) const noexcept {
    static constexpr PortBits kNone{};
    const auto& bits = node_ports_[protocol_index(protocol)];
    return bits == nullptr ? kNone.data() : bits->data();
}

}  // namespace penstock::lb
