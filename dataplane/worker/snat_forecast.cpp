// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/snat_forecast.hpp"

#include <bit>

#include "dataplane/conn/aging.hpp"
#include "dataplane/nat/source_search.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"

namespace penstock::worker {

using packet::FlowKey;

bool SnatForecast::is_in_use(const FlowKey& key) const {
    if (worker_.copies != nullptr && pipeline::is_reserved_by_copy(*worker_.copies, forward_, key)) {
        return true;
    }
    const auto found = find_connection(worker_, key);
    return found && !is_removed(found->unit);
}

std::optional<FlowKey> SnatForecast::former_source(
    FlowKey after, const std::vector<const nat::SnatAddress*>& in_turn) const {
    if (removed_ == nullptr || removed_->connection.source_kept) {
        return std::nullopt;
    }
    after.source = removed_->connection.reverse.destination;
    after.source_port = removed_->connection.reverse.destination_port;
    for (const nat::SnatAddress* source : in_turn) {
        if (source->address == after.source &&
            rules_of(after.destination, after.destination_port, *source).is_usable(after.source_port) &&
            !is_in_use(after.reversed())) {
            return after;
        }
    }
    return std::nullopt;
}

SnatForecast::PortChoice SnatForecast::choose_port(
    const lb::Backend& endpoint, const std::vector<const nat::SnatAddress*>& in_turn) const {
    PortChoice choice;
    for (const nat::SnatAddress* source : in_turn) {
        const PortUse use = port_use(endpoint, *source);
        choice.use.usable += use.usable;
        choice.use.free += use.free;
        choice.use.reclaimable += use.reclaimable;
        if (use.free > 0) {
            choice.source = source;
            choice.is_free = true;
            return choice;
        }
        if (use.reclaimable > 0 && choice.source == nullptr) {
            choice.source = source;
        }
    }
    return choice;
}

const nat::ReplyRule* SnatForecast::rule_of_replies(const lb::Backend& endpoint,
                                                    const nat::SnatAddress& source) const {
    return worker_.owner.rule_of_replies(snapshot_.snat->addresses.reply_egress(index_of(source)),
                                         endpoint.address.family(), forward_.protocol);
}

SnatForecast::PortUse SnatForecast::port_use(const lb::Backend& endpoint,
                                             const nat::SnatAddress& source) const {
    enum class Port : uint8_t { Free, Reclaimable, Taken };
    std::vector<Port> ports(65'536, Port::Free);
    const uint32_t end = worker_.connections.high_water();
    for (uint32_t unit = 0; unit < end; ++unit) {
        conn::Connection connection;
        if (!worker_.connections.read(unit, connection) || connection.reverse.source != endpoint.address ||
            connection.reverse.source_port != endpoint.port ||
            connection.reverse.protocol != forward_.protocol ||
            connection.reverse.destination != source.address || is_removed(unit)) {
            continue;
        }
        const bool stays = conn::worth_of(connection) == conn::Worth::Keep;
        ports[connection.reverse.destination_port] = stays ? Port::Taken : Port::Reclaimable;
    }
    const auto is_reserved = [&](L4Port port) {
        return worker_.copies != nullptr &&
               pipeline::is_reserved_by_copy(
                   *worker_.copies, forward_,
                   {endpoint.address, source.address, endpoint.port, port, forward_.protocol, {}});
    };
    PortUse use;
    worker_.snat_ports.for_each_usable(
        rules_of(endpoint.address, endpoint.port, source), [&](L4Port first, uint64_t bits) {
            for (; bits != 0; bits &= bits - 1) {
                const auto number = static_cast<L4Port>(first + std::countr_zero(bits));
                const Port port = is_reserved(number) ? Port::Taken : ports[number];
                ++use.usable;
                use.free += port == Port::Free ? 1 : 0;
                use.reclaimable += port == Port::Reclaimable ? 1 : 0;
            }
        });
    return use;
}

nat::PortRules SnatForecast::rules_of(const IpAddr& endpoint, L4Port endpoint_port,
                                      const nat::SnatAddress& source) const {
    const nat::HostPorts host{snapshot_.services->node_port_bits(forward_.protocol),
                              static_cast<uint32_t>(snapshot_.generation)};
    return nat::rules_towards(worker_.snat_ports, *snapshot_.snat, index_of(source), host,
                              {source.address, endpoint, endpoint_port, forward_.protocol});
}

size_t SnatForecast::index_of(const nat::SnatAddress& source) const {
    return static_cast<size_t>(&source - &snapshot_.snat->addresses[0]);
}

}  // namespace penstock::worker
