// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/compile.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "control/gateway/compile/backend_sets.hpp"
#include "control/gateway/compile/kept_endpoints.hpp"
#include "control/gateway/compile/port_addresses.hpp"
#include "control/gateway/shares/share_snat.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::gateway {
namespace {

using lb::FrontendClass;

bool is_vip_class(FrontendClass cls) {
    return cls == FrontendClass::LoadBalancerIp || cls == FrontendClass::ExternalIp;
}

// Those that have a number: all that have flows, if they are listed, otherwise those that are offered.
std::vector<SocketAddress> numbered_endpoints(const Programmed& programmed) {
    return programmed.service->flow_endpoints.empty() ? offered_endpoints(*programmed.desired)
                                                      : places_of(programmed.service->flow_endpoints);
}

}  // namespace

void Compiler::run(const CompileInput& input, std::span<const model::ServiceKey> touched) {
    changes_ = {};
    lists_flow_endpoints_ = input.shares != nullptr;
    begin_round();
    affinity_.forget(input.forgotten);
    for (const auto& key : touched) {
        take_over(input, key);
    }
    affinity_.regroup();
    consider_due();
    end_round();
    if (was_released_ && !short_of_ids_.empty()) {
        begin_round();
        consider_due();
        end_round();
    }
    place_rows(input);
    count_kept_backends();
    publish();
}

std::optional<BackendId> Compiler::number_of_former(const BackendKey& backend) {
    if (const auto in_force = ids_.backends.find(backend)) {
        return in_force;
    }
    const auto id = ids_.backends.take(backend);
    if (id) {
        ids_.backends.release(*id);
    }
    return id;
}

void Compiler::begin_round() {
    arbiter_.begin_round();
    // Room can only shrink until ids are released.
    if (std::exchange(was_released_, false)) {
        for (PortRecord* port : short_of_ids_) {
            arbiter_.make_due(*port);
        }
    }
}

void Compiler::take_over(const CompileInput& input, const model::ServiceKey& key) {
    const auto* next = input.desired.get(key);
    if (next == nullptr) {
        const auto found = ports_.find(key);
        if (found == ports_.end() || found->second.desired == nullptr) {
            return;
        }
        PortRecord& port = found->second;
        changed_.insert(port.key);
        short_of_ids_.erase(&port);
        affinity_.expect(port.desired.get(), nullptr);
        affinity_.service_is_gone(key, port.in_force.service.get());
        arbiter_.withdraw(port);
        port.in_force = {};
        port.refusal.reset();
        considered_.insert(&port);
        return;
    }
    PortRecord& port = ports_.try_emplace(key, key).first->second;
    if (port.desired != *next) {
        affinity_.expect(port.desired.get(), next->get());
        arbiter_.want(port, *next);
    }
    const auto* health = input.health.get(key);
    const SharedHealth next_health = health == nullptr ? nullptr : *health;
    if (port.health != next_health) {
        port.health = next_health;
        arbiter_.make_due(port);
    }
}

void Compiler::consider_due() {
    while (Claimant* due = arbiter_.take_due()) {
        consider(static_cast<PortRecord&>(*due));
    }
}

// The result of the round is final: ids are released in the order of keys, and ranks are updated.
void Compiler::end_round() {
    for (PortRecord* port : considered_) {
        release_ids(port->former, port->in_force);
        arbiter_.set_in_force(*port, port->in_force.service != nullptr);
        port->former = port->in_force;
    }
    affinity_.release_unused();
    for (PortRecord* port : std::exchange(considered_, {})) {
        if (port->desired == nullptr) {
            ports_.erase(model::ServiceKey(port->key));
        }
    }
}

// Once in a round: all service ports of better rank have been processed.
void Compiler::consider(PortRecord& port) {
    changed_.insert(port.key);
    considered_.insert(&port);
    if (auto refusal = obstacle_of(port)) {
        short_of_ids_.erase(&port);
        refuse(port, std::move(*refusal));
        return;
    }
    const Programmed& former = port.former;
    if (former.service != nullptr && former.health == port.health &&
        affinity_.is_current(*former.service, *port.desired) &&
        (former.desired == port.desired || same_backends(*former.desired, *port.desired)) &&
        places_of(former.service->flow_endpoints) == listed_endpoints(*port.desired)) {
        accept(port, former.service);
    } else if (auto service = build_service(port)) {
        accept(port, std::move(service));
    }
}

// Returns nullopt if there is no obstacle.
std::optional<model::Refusal> Compiler::obstacle_of(const PortRecord& port) const {
    FrontendKeySet own;
    for (const auto& frontend : port.desired->frontends) {
        const FrontendKey claim(frontend, port.key.protocol);
        // Neither case can arrive over gRPC (rpc/convert.hpp).
        if (std::max(frontend.set, frontend.inside_set.value_or(0)) >= port.desired->sets.size()) {
            return model::Refusal{model::kInvalidService,
                                  claim.to_string() + " references a missing backend set"};
        }
        if (!own.insert(claim).second) {
            return model::Refusal{model::kInvalidService, claim.to_string() + " is listed twice"};
        }
        if (const Claimant* owner = arbiter_.better_owner(port, claim)) {
            return model::Refusal{model::kFrontendConflict,
                                  claim.to_string() + " belongs to service " + owner->key.to_string()};
        }
    }
    return std::nullopt;
}

// Those of lb::Service::flow_endpoints.
std::vector<SocketAddress> Compiler::listed_endpoints(const model::Service& desired) const {
    return lists_flow_endpoints_ ? endpoints_with_flows(desired) : std::vector<SocketAddress>();
}

// Returns null if refused. Takes the ids of new backends. The ids of lost backends are released at the end of
// the round.
std::shared_ptr<const lb::Service> Compiler::build_service(PortRecord& port) {
    const model::ServiceKey& key = port.key;
    const model::Service& desired = *port.desired;
    const auto former_id = ids_.services.find(key);
    if (!former_id && ids_.services.room() == 0) {
        short_of_ids_.insert(&port);
        refuse(port, {model::kCapacityExceeded, "there is no room for another service port"});
        return nullptr;
    }
    const auto places = lists_flow_endpoints_ ? endpoints_with_flows(desired) : offered_endpoints(desired);
    const auto missing = static_cast<size_t>(std::ranges::count_if(places, [&](const SocketAddress& place) {
        return !former_id || !ids_.backends.find({*former_id, place.address, place.port, desired.uid});
    }));
    if (missing > ids_.backends.room()) {
        short_of_ids_.insert(&port);
        refuse(port, {model::kCapacityExceeded, "there is no room for " + std::to_string(missing) +
                                                    " more endpoints, only for " +
                                                    std::to_string(ids_.backends.room())});
        return nullptr;
    }
    auto service = std::make_shared<lb::Service>();
    const auto service_id = ids_.services.take(key);
    PENSTOCK_CHECK(service_id);  // there is room
    service->id = *service_id;
    service->namespace_name = key.namespace_name;
    service->name = key.name;
    service->port_name = key.port_name;
    service->protocol = key.protocol;
    service->scheduler = desired.scheduler;
    service->flow_records = !desired.access_log.enabled   ? lb::FlowRecords::Default
                            : *desired.access_log.enabled ? lb::FlowRecords::On
                                                          : lb::FlowRecords::Off;
    service->affinity_timeout_s = desired.affinity_timeout_s;
    std::vector<lb::FlowEndpoints::Endpoint> numbered;
    for (const auto& [address, l4_port] : places) {
        const auto id = ids_.backends.take({service->id, address, l4_port, desired.uid});
        PENSTOCK_CHECK(id);
        numbered.push_back({address, l4_port, *id});
    }
    if (lists_flow_endpoints_) {
        service->flow_endpoints = lb::FlowEndpoints(std::move(numbered));
    }
    for (const auto& set : desired.sets) {
        service->sets.push_back(build_set(desired, set, service->id, ids_, port.health));
    }
    affinity_.apply(*service, desired, port.former.service.get(), port.former.desired.get());
    return service;
}

void Compiler::accept(PortRecord& port, std::shared_ptr<const lb::Service> service) {
    short_of_ids_.erase(&port);
    port.refusal.reset();
    if (port.owned == port.desired && port.in_force.service == service) {
        return;  // unchanged
    }
    Programmed programmed{.desired = port.desired,
                          .service = std::move(service),
                          .filter = nullptr,
                          .health = port.health,
                          .fails_open = fails_open(*port.desired, port.health)};
    if (port.former.service != nullptr && port.former.desired->source_ranges == port.desired->source_ranges &&
        port.former.desired->source_ranges_deny == port.desired->source_ranges_deny) {
        programmed.filter = port.former.filter;
    }
    if (programmed.filter == nullptr &&
        std::ranges::any_of(port.desired->frontends, &model::Frontend::filtered)) {
        programmed.filter = std::make_shared<const lb::SourceFilter>(
            lb::SourceFilter{true, port.desired->source_ranges, port.desired->source_ranges_deny});
    }
    port.in_force = std::move(programmed);
    arbiter_.grant(port);
}

// The version in force stays, except for claims that others own.
void Compiler::refuse(PortRecord& port, model::Refusal refusal) {
    refusal.why = "service " + port.key.to_string() + ": " + refusal.why;
    port.refusal = std::move(refusal);
    arbiter_.refuse(port, port.in_force.desired);
}

void Compiler::release_ids(const Programmed& before, const Programmed& now) {
    if (before.service == nullptr || before.service == now.service) {
        return;
    }
    const bool is_same_object = now.service != nullptr && now.desired->uid == before.desired->uid;
    const auto kept = is_same_object ? numbered_endpoints(now) : std::vector<SocketAddress>();
    for (const SocketAddress& place : numbered_endpoints(before)) {
        if (std::ranges::binary_search(kept, place)) {
            continue;
        }
        if (const auto id =
                ids_.backends.find({before.service->id, place.address, place.port, before.desired->uid})) {
            ids_.backends.release(*id);
            was_released_ = true;
        }
    }
    if (now.service == nullptr) {
        ids_.services.release(before.service->id);
        was_released_ = true;
    }
}

void Compiler::place_rows(const CompileInput& input) {
    if (input.shares != shares_) {
        shares_ = input.shares;
        arbiter_.touch_exact();  // the SNAT addresses of a VIP
    }
    for (const FrontendKey& claim : arbiter_.touched()) {
        if (!claim.node_port) {
            count_vip(claim);
        }
    }
    std::set<IpAddr> own_vips;  // those among the gateway's own addresses
    for (const auto& own : input.addresses) {
        if (vips_.contains(own.address)) {
            own_vips.insert(own.address);
        }
    }
    auto addresses = gateway::node_port_addresses(input.node_ports, input.addresses, own_vips);
    std::vector<IpAddr> concerned = addresses;
    if (addresses != node_port_addresses_) {
        arbiter_.touch_node_ports();
        concerned.insert(concerned.end(), node_port_addresses_.begin(), node_port_addresses_.end());
        node_port_addresses_ = std::move(addresses);
    }
    std::set<std::tuple<IpAddr, L4Port, Protocol>> rows;
    for (const FrontendKey& claim : arbiter_.touched()) {
        if (!claim.node_port) {
            rows.emplace(claim.address, claim.port, claim.protocol);
            continue;
        }
        declare_node_port(claim);
        for (const IpAddr& address : concerned) {
            if (address.family() == claim.family) {
                rows.emplace(address, claim.port, claim.protocol);
            }
        }
    }
    for (const auto& [address, l4_port, protocol] : rows) {
        place_row(address, l4_port, protocol);
    }
    arbiter_.forget_touched();
}

// An exact frontend, otherwise a NodePort, otherwise none (NODEPORT-004).
void Compiler::place_row(const IpAddr& address, L4Port l4_port, Protocol protocol) {
    Winner winner = winner_of(FrontendKey::exact(address, l4_port, protocol));
    if (winner.of == nullptr && std::ranges::binary_search(node_port_addresses_, address)) {
        winner = winner_of(FrontendKey::of_node_port(address.family(), l4_port, protocol));
    }
    ChangedTuple& change = changes_.tuples.emplace_back(SocketAddress{address, l4_port});
    if (const lb::FrontendRow* before = compiled_->table->find(address, l4_port, protocol)) {
        const lb::Service& owner = *before->service;
        change.before = model::ServiceKey{owner.namespace_name, owner.name, owner.port_name, protocol};
    }
    if (winner.of == nullptr) {
        table_.erase(address, l4_port, protocol);
        return;
    }
    change.after = winner.of->key;
    const Programmed& programmed = winner.of->in_force;
    table_.put({.address = address,
                .port = l4_port,
                .protocol = protocol,
                .cls = winner.frontend->cls,
                .set = winner.frontend->set,
                .service = programmed.service,
                .filter = winner.frontend->filtered ? programmed.filter : nullptr,
                .inside_set = winner.frontend->inside_set,
                .snat_group =
                    is_vip_class(winner.frontend->cls) ? snat_group_of(shares_.get(), address) : uint8_t{0}});
}

Compiler::Winner Compiler::winner_of(const FrontendKey& claim) const {
    const auto* of = static_cast<const PortRecord*>(arbiter_.winner(claim));
    if (of == nullptr) {
        return {};
    }
    const auto frontend = std::ranges::find_if(
        of->in_force.desired->frontends,
        [&](const model::Frontend& each) { return FrontendKey(each, of->key.protocol) == claim; });
    PENSTOCK_CHECK(frontend != of->in_force.desired->frontends.end());  // an owner's or holder's version
    return {&*frontend, of};
}

void Compiler::count_vip(const FrontendKey& claim) {
    const Winner winner = winner_of(claim);
    const bool counts = winner.of != nullptr && is_vip_class(winner.frontend->cls);
    if (counts == vip_claims_.contains(claim)) {
        return;
    }
    uint32_t& rows = vips_[claim.address];
    if (counts) {
        vip_claims_.insert(claim);
        ++rows;
    } else {
        vip_claims_.erase(claim);
        --rows;
    }
    if (rows == 0) {
        vips_.erase(claim.address);
        table_.set_vip(claim.address, false);
    } else {
        table_.set_vip(claim.address, true);
    }
}

// A number is declared for both families together: SNAT does not use it on any address.
void Compiler::declare_node_port(const FrontendKey& claim) {
    const bool is_served = std::ranges::any_of(
        node_port_addresses_, [&](const IpAddr& address) { return address.family() == claim.family; });
    if (is_served && winner_of(claim).of != nullptr) {
        declared_node_ports_.insert(claim);
    } else {
        declared_node_ports_.erase(claim);
    }
    const auto declares = [&](IpFamily family) {
        return declared_node_ports_.contains(FrontendKey::of_node_port(family, claim.port, claim.protocol));
    };
    table_.set_node_port(claim.port, claim.protocol, declares(IpFamily::V4) || declares(IpFamily::V6));
}

void Compiler::count_kept_backends() {
    const auto now_of = [&](const model::ServiceKey& key) {
        const auto port = ports_.find(key);
        return port == ports_.end() ? nullptr : port->second.in_force.service.get();
    };
    const auto before_of = [&](const model::ServiceKey& key) {
        const Programmed* programmed = compiled_->services.get(key);
        return programmed == nullptr ? nullptr : programmed->service.get();
    };
    for (const auto& key : changed_) {
        if (const lb::Service* now = now_of(key); now != nullptr && now != before_of(key)) {
            table_.add_backends(*now);
        }
    }
    for (const auto& key : changed_) {
        if (const lb::Service* before = before_of(key); before != nullptr && before != now_of(key)) {
            table_.remove_backends(*before);
        }
    }
}

void Compiler::publish() {
    auto next = std::make_shared<Compiled>(*compiled_);
    next->table = table_.table();
    next->node_port_addresses = node_port_addresses_;
    for (const auto& key : std::exchange(changed_, {})) {
        changes_.services.push_back(key);
        const auto port = ports_.find(key);
        if (port == ports_.end() || port->second.in_force.service == nullptr) {
            next->services.erase(key);
        } else {
            next->services.insert_or_assign(key, port->second.in_force);
        }
        if (port == ports_.end() || !port->second.refusal) {
            next->refusals.erase(key);
        } else {
            next->refusals.insert_or_assign(key, *port->second.refusal);
        }
    }
    compiled_ = std::move(next);
}

}  // namespace penstock::gateway
