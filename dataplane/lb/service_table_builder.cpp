// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/service_table_builder.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

namespace penstock::lb {
namespace {

// Predicate: whether a row or a departure has this tuple.
struct IsAt {
    const IpAddr& address;
    L4Port port;
    Protocol protocol;
    template <typename Row>
    bool operator()(const Row& row) const noexcept {
        return row.address == address && row.port == port && row.protocol == protocol;
    }
};

SourceModes modes_of(const Frontend& frontend, uint8_t set) noexcept {
    const SourceMode mode = frontend.service->sets[set].source;
    return {.translate_seen = mode == SourceMode::Translate,
            .keep_seen = mode == SourceMode::Keep,
            .current = mode};
}

void add_what_was(SourceModes& modes, const SourceModes& before) noexcept {
    modes.translate_seen |= before.translate_seen;
    modes.keep_seen |= before.keep_seen;
}

// Keeps the Service and the filter alive.
std::shared_ptr<const void> owner_of(const Frontend& frontend) {
    if (frontend.filter == nullptr) {
        return frontend.service;
    }
    return std::make_shared<
        const std::pair<std::shared_ptr<const Service>, std::shared_ptr<const SourceFilter>>>(
        frontend.service, frontend.filter);
}

bool is_of_vip(const FrontendRow& row) noexcept {
    return row.cls == FrontendClass::LoadBalancerIp || row.cls == FrontendClass::ExternalIp;
}
bool has_usable(const FrontendRow& row) noexcept {
    return !row.backends().usable.empty();
}
bool is_elsewhere(const FrontendRow& row) noexcept {
    return row.backends().usable.empty() && row.backends().when_empty == EmptyAction::DropNoLocal;
}

template <typename Visit>
void for_each_kept(const Service& service, Visit&& visit) {
    for (const BackendSet& set : service.sets) {
        if (set.source == SourceMode::Keep) {
            for (const Backend& backend : set.usable) {
                visit(backend);
            }
        }
    }
}

// Number by which outdated departures may exceed the current ones before they are swept out.
constexpr size_t kOutdatedMax = 1'024;

template <typename Departures, typename IsCurrent>
void sweep(Departures& departures, size_t current, IsCurrent&& is_current) {
    if (departures.size() > 2 * current + kOutdatedMax) {
        std::erase_if(departures, [&](const auto& departure) { return !is_current(departure); });
    }
}

}  // namespace

ServiceTableBuilder::ServiceTableBuilder(size_t remembered_max)
    : remembered_max_(remembered_max),
      hash_of_{KeyedMix(HashKey::random())},
      rows_(hash_of_),
      vips_(hash_of_),
      kept_backends_(hash_of_),
      retired_(hash_of_),
      flow_addresses_(hash_of_),
      endpoints_(hash_of_) {}

uint64_t ServiceTableBuilder::hash(const IpAddr& address, L4Port port, Protocol protocol) const noexcept {
    return hash_of_(Departure{address, port, protocol, 0});
}

void ServiceTableBuilder::put(const Frontend& frontend) {
    const uint64_t at = hash(frontend.address, frontend.port, frontend.protocol);
    const IsAt is_it{frontend.address, frontend.port, frontend.protocol};
    const uint8_t inside_set = frontend.inside_set.value_or(frontend.set);
    FrontendRow row{.address = frontend.address,
                    .service = frontend.service.get(),
                    .filter = frontend.filter.get(),
                    .port = frontend.port,
                    .protocol = frontend.protocol,
                    .cls = frontend.cls,
                    .set = frontend.set,
                    .inside_set = inside_set,
                    .modes = {modes_of(frontend, frontend.set), modes_of(frontend, inside_set)},
                    .snat_group = frontend.snat_group,
                    .owner = owner_of(frontend)};
    count_in(row, frontend.filter);
    set_bit(frontend_ports_, frontend.port, frontend.protocol, true);
    const auto with_what_was = [&](const PlacementModes& before) {
        add_what_was(row.modes, before);
        add_what_was(row.modes.inside, before.inside);
    };
    if (FrontendRow* present = rows_.find_to_edit(at, is_it)) {
        with_what_was(present->modes);
        count_out(*present);
        *present = std::move(row);
        return;
    }
    if (const RetiredFrontend* gone = retired_.find(at, is_it)) {
        with_what_was(gone->modes);
        retired_.erase(at, is_it);
    } else {
        add_flow_address(frontend.address);
    }
    rows_.insert(std::move(row));
}

void ServiceTableBuilder::erase(const IpAddr& address, L4Port port, Protocol protocol) {
    const uint64_t at = hash(address, port, protocol);
    const IsAt is_it{address, port, protocol};
    if (const FrontendRow* present = rows_.find(at, is_it)) {
        retire(address, port, protocol, present->modes);
        count_out(*present);
        rows_.erase(at, is_it);
    }
}

void ServiceTableBuilder::retire(const IpAddr& address, L4Port port, Protocol protocol,
                                 PlacementModes modes) {
    retired_.insert(
        {.address = address, .port = port, .protocol = protocol, .modes = modes, .gone_as = ++departures_});
    gone_frontends_.push_back({address, port, protocol, departures_});
}

void ServiceTableBuilder::add_flow_address(const IpAddr& address) {
    const uint64_t at = hash_of_(address);
    if (FlowAddress* row = flow_addresses_.find_to_edit(
            at, [&](const FlowAddress& known) { return known.address == address; })) {
        ++row->rows;
    } else {
        flow_addresses_.insert({address, 1});
    }
}

void ServiceTableBuilder::remove_flow_address(const IpAddr& address) {
    const uint64_t at = hash_of_(address);
    const auto is_it = [&](const FlowAddress& row) { return row.address == address; };
    if (--flow_addresses_.find_to_edit(at, is_it)->rows == 0) {
        flow_addresses_.erase(at, is_it);
    }
}

void ServiceTableBuilder::set_vip(const IpAddr& address, bool is_vip) {
    const uint64_t at = hash_of_(address);
    const auto is_it = [&](const Vip& row) { return row.address == address; };
    if (!is_vip) {
        vips_.erase(at, is_it);
    } else if (vips_.find(at, is_it) == nullptr) {
        vips_.insert({.address = address});
        if (const auto known = vip_frontends_.find(address); known != vip_frontends_.end()) {
            known->second.is_other_audience = true;
        }
        touched_vips_.insert(address);
    }
}

void ServiceTableBuilder::count_in(const FrontendRow& row,
                                   const std::shared_ptr<const SourceFilter>& filter) {
    if (!is_of_vip(row)) {
        return;
    }
    VipFrontends& all = vip_frontends_[row.address];
    all.usable += has_usable(row) ? 1 : 0;
    all.elsewhere += is_elsewhere(row) ? 1 : 0;
    VipFrontends::Filtered& filtered = all.filters[filter.get()];
    filtered.filter = filter;
    all.is_other_audience |= ++filtered.count == 1;
    touched_vips_.insert(row.address);
}

void ServiceTableBuilder::count_out(const FrontendRow& row) {
    if (!is_of_vip(row)) {
        return;
    }
    VipFrontends& all = vip_frontends_.at(row.address);
    all.usable -= has_usable(row) ? 1 : 0;
    all.elsewhere -= is_elsewhere(row) ? 1 : 0;
    const auto filtered = all.filters.find(row.filter);
    if (--filtered->second.count == 0) {
        all.filters.erase(filtered);
        all.is_other_audience = true;
    }
    touched_vips_.insert(row.address);
}

// Called once per version, however many frontends have changed. Most changes only affect endpoints and leave
// this data unchanged.
void ServiceTableBuilder::renew_vips() {
    for (const IpAddr& address : std::exchange(touched_vips_, {})) {
        const auto known = vip_frontends_.find(address);
        if (known == vip_frontends_.end()) {
            continue;
        }
        VipFrontends& all = known->second;
        const uint64_t at = hash_of_(address);
        const auto is_it = [&](const Vip& row) { return row.address == address; };
        const Vip* row = vips_.find(at, is_it);
        if (row != nullptr && (all.is_other_audience || row->is_withdrawn != all.is_withdrawn())) {
            Vip& renewed = *vips_.find_to_edit(at, is_it);
            renewed.is_withdrawn = all.is_withdrawn();
            if (std::exchange(all.is_other_audience, false)) {
                std::vector<const SourceFilter*> filters;
                std::ranges::copy(std::views::keys(all.filters), std::back_inserter(filters));
                renewed.audience = std::make_shared<const VipAudience>(filters);
            }
        }
        if (all.filters.empty()) {
            vip_frontends_.erase(known);
        }
    }
}

// Copies the bits if they differ, because tables share unchanged ones.
void ServiceTableBuilder::set_bit(ServiceTable::PortBitsByProtocol& ports, L4Port port, Protocol protocol,
                                  bool is_set) {
    if (ServiceTable::has_bit(ports, port, protocol) == is_set) {
        return;
    }
    auto& bits = ports[ServiceTable::protocol_index(protocol)];
    auto next = bits == nullptr ? std::make_shared<ServiceTable::PortBits>()
                                : std::make_shared<ServiceTable::PortBits>(*bits);
    (*next)[port / 64] ^= uint64_t{1} << (port % 64);
    bits = std::move(next);
}

void ServiceTableBuilder::set_node_port(L4Port port, Protocol protocol, bool is_declared) {
    set_bit(node_ports_, port, protocol, is_declared);
}

void ServiceTableBuilder::note_endpoints(const Service& service) {
    auto& known = endpoint_ports_[ServiceTable::protocol_index(service.protocol)];
    // A copy, if a bit is missing: tables share unchanged bits.
    std::shared_ptr<ServiceTable::PortBits> next;
    const auto note = [&](const IpAddr& address, L4Port port) {
        endpoint_addresses_.add(address);
        const uint64_t mask = uint64_t{1} << (port % 64);
        const ServiceTable::PortBits* bits = next != nullptr ? next.get() : known.get();
        if (bits != nullptr && ((*bits)[port / 64] & mask) != 0) {
            return;
        }
        if (next == nullptr) {
            next = known == nullptr ? std::make_shared<ServiceTable::PortBits>()
                                    : std::make_shared<ServiceTable::PortBits>(*known);
        }
        (*next)[port / 64] |= mask;
    };
    for (const BackendSet& set : service.sets) {
        for (const Backend& backend : set.usable) {
            note(backend.address, backend.port);
        }
    }
    for (const FlowEndpoints::Endpoint& endpoint : service.flow_endpoints.all()) {
        note(endpoint.address, endpoint.port);
    }
    if (next != nullptr) {
        known = std::move(next);
    }
}

void ServiceTableBuilder::count_endpoints(const Service& service) {
    for (const BackendSet& set : service.sets) {
        for (const Backend& backend : set.usable) {
            if (++sets_of_endpoint_[backend.address] == 1) {
                endpoints_.insert({backend.address});
            }
        }
    }
}

void ServiceTableBuilder::count_endpoints_out(const Service& service) {
    for (const BackendSet& set : service.sets) {
        for (const Backend& backend : set.usable) {
            const auto counted = sets_of_endpoint_.find(backend.address);
            if (--counted->second == 0) {
                sets_of_endpoint_.erase(counted);
                endpoints_.erase(hash_of_(backend.address),
                                 [&](const Endpoint& row) { return row.address == backend.address; });
            }
        }
    }
}

void ServiceTableBuilder::add_backends(const Service& service) {
    note_endpoints(service);
    count_endpoints(service);
    for_each_kept(service, [&](const Backend& backend) {
        const uint64_t at = hash(backend.address, backend.port, service.protocol);
        if (KeptBackend* row =
                kept_backends_.find_to_edit(at, IsAt{backend.address, backend.port, service.protocol})) {
            kept_gone_ -= row->sets == 0 ? 1 : 0;
            ++row->sets;
        } else {
            kept_backends_.insert(
                {.address = backend.address, .port = backend.port, .protocol = service.protocol, .sets = 1});
            add_flow_address(backend.address);
        }
    });
}

void ServiceTableBuilder::remove_backends(const Service& service) {
    count_endpoints_out(service);
    for_each_kept(service, [&](const Backend& backend) {
        const uint64_t at = hash(backend.address, backend.port, service.protocol);
        KeptBackend* row =
            kept_backends_.find_to_edit(at, IsAt{backend.address, backend.port, service.protocol});
        if (--row->sets == 0) {
            row->gone_as = ++departures_;
            gone_kept_.push_back({backend.address, backend.port, service.protocol, departures_});
            ++kept_gone_;
        }
    });
}

void ServiceTableBuilder::remember(const ServiceTable& previous) {
    frontend_ports_ = previous.frontend_ports_;
    endpoint_ports_ = previous.endpoint_ports_;
    endpoint_addresses_ = previous.endpoint_addresses_;
    const auto take_over = [&](const auto& row) {
        retire(row.address, row.port, row.protocol, row.modes);
        add_flow_address(row.address);
    };
    previous.retired_.for_each(take_over);
    previous.rows_.for_each(take_over);
    previous.kept_backends_.for_each([&](const KeptBackend& row) {
        add_flow_address(row.address);
        kept_backends_.insert({.address = row.address,
                               .port = row.port,
                               .protocol = row.protocol,
                               .sets = 0,
                               .gone_as = ++departures_});
        gone_kept_.push_back({row.address, row.port, row.protocol, departures_});
        ++kept_gone_;
    });
}

void ServiceTableBuilder::forget_oldest() {
    const auto retired_as = [&](const Departure& gone) {
        const RetiredFrontend* row = retired_.find(hash(gone.address, gone.port, gone.protocol),
                                                   IsAt{gone.address, gone.port, gone.protocol});
        return row != nullptr && row->gone_as == gone.gone_as;
    };
    const auto kept_gone_as = [&](const Departure& gone) {
        const KeptBackend* row = kept_backends_.find(hash(gone.address, gone.port, gone.protocol),
                                                     IsAt{gone.address, gone.port, gone.protocol});
        return row != nullptr && row->sets == 0 && row->gone_as == gone.gone_as;
    };
    while (retired_.size() > remembered_max_) {
        const Departure& gone = gone_frontends_.front();
        if (retired_as(gone)) {
            retired_.erase(hash(gone.address, gone.port, gone.protocol),
                           IsAt{gone.address, gone.port, gone.protocol});
            remove_flow_address(gone.address);
        }
        gone_frontends_.pop_front();
    }
    while (kept_gone_ > remembered_max_) {
        const Departure& gone = gone_kept_.front();
        if (kept_gone_as(gone)) {
            kept_backends_.erase(hash(gone.address, gone.port, gone.protocol),
                                 IsAt{gone.address, gone.port, gone.protocol});
            remove_flow_address(gone.address);
            --kept_gone_;
        }
        gone_kept_.pop_front();
    }
    sweep(gone_frontends_, retired_.size(), retired_as);
    sweep(gone_kept_, kept_gone_, kept_gone_as);
}

std::shared_ptr<const ServiceTable> ServiceTableBuilder::table() {
    forget_oldest();
    renew_vips();
    auto next = std::make_shared<ServiceTable>();
    next->mix_ = hash_of_.mix;
    next->rows_ = rows_.view();
    next->vips_ = vips_.view();
    next->kept_backends_ = kept_backends_.view();
    next->retired_ = retired_.view();
    next->flow_addresses_ = flow_addresses_.view();
    next->endpoints_ = endpoints_.view();
    next->node_ports_ = node_ports_;
    next->frontend_ports_ = frontend_ports_;
    next->endpoint_ports_ = endpoint_ports_;
    next->endpoint_addresses_ = endpoint_addresses_;
    return next;
}

}  // namespace penstock::lb
