// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/engine.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "control/semantics/node_ports.hpp"
#include "control/semantics/notice_difference.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {
namespace {

// Whether the evaluation is the same for both identities. It reads only these fields.
bool reads_alike(const model::GatewayIdentity& a, const model::GatewayIdentity& b) {
    return a.mode == b.mode && a.node_name == b.node_name && a.labels == b.labels;
}

bool same_but_for_rights(Policy a, const Policy& b) {
    a.allowed_external_cidrs = b.allowed_external_cidrs;
    a.external_ip_rules = b.external_ip_rules;
    a.protected_addresses = b.protected_addresses;
    return a == b;
}

}  // namespace

Engine::Engine(Policy policy) : policy_(std::move(policy)), external_ip_rules_(policy_) {
    for (const Prefix& cidr : policy_.cluster_cidrs) {
        facts_.pod_cidrs.add(cidr);
    }
}

Step Engine::set_gateway(const model::GatewayIdentity& gateway) {
    Step step;
    const bool is_first = !gateway_;
    const bool is_another = is_first || !reads_alike(*gateway_, gateway);
    choice_due_ = is_another || gateway_->routed_prefixes != gateway.routed_prefixes;
    gateway_ = gateway;
    if (!is_another) {
        process_due(step);
        return step;
    }
    if (is_first) {
        kube::Changes all;
        all.services = std::exchange(objects_.services, {});
        all.slices = std::exchange(objects_.slices, {});
        all.nodes = std::exchange(objects_.nodes, {});
        take_in(all, step);
    }
    mark_all(Due::Plan);
    environment_due_ = true;
    process_due(step);
    return step;
}

Step Engine::set_policy(Policy policy) {
    Step step;
    if (policy == policy_) {
        return step;
    }
    const bool only_rights_differ = same_but_for_rights(policy, policy_);
    for (const Prefix& cidr : policy_.cluster_cidrs) {
        facts_.pod_cidrs.remove(cidr);
    }
    for (const Prefix& cidr : policy.cluster_cidrs) {
        facts_.pod_cidrs.add(cidr);
    }
    policy_ = std::move(policy);
    external_ip_rules_ = ExternalIpRules(policy_);
    if (!gateway_) {
        return step;
    }
    if (only_rights_differ) {
        external_ip_users_.each([this](Record& record) { mark(record, Due::Plan); });
    } else {
        mark_all(Due::Plan);
        choice_due_ = true;
        environment_due_ = true;
    }
    process_due(step);
    return step;
}

Step Engine::apply(const kube::Changes& changes) {
    Step step;
    if (!gateway_) {
        objects_.apply(changes);
        return step;
    }
    take_in(changes, step);
    process_due(step);
    return step;
}

Engine::Record& Engine::record_of(const kube::ObjectName& service) {
    const auto [place, is_new] = records_.try_emplace(service);
    if (is_new) {
        place->second.name = &place->first;
    }
    return place->second;
}

void Engine::mark(Record& record, Due due) {
    if (record.due == Due::Nothing) {
        due_.push_back(&record);
    }
    record.due = std::max(record.due, due);
}

void Engine::mark_all(Due due) {
    for (auto& [name, record] : records_) {
        mark(record, due);
    }
}

void Engine::process_due(Step& step) {
    choose_between_pods_and_nodes(step);
    make_plans();
    make_decisions(step);
    if (std::exchange(environment_due_, false)) {
        read_environment(step);
    }
    std::ranges::sort(step.appeared);
    std::ranges::sort(step.gone);
}

void Engine::choose_between_pods_and_nodes(Step& step) {
    if (!std::exchange(choice_due_, false) && !pod_cidrs_changed_) {
        return;
    }
    const PrefixSet operators(policy_.cluster_cidrs);
    // The operator's prefix may be wider than the routes, which exist per Node.
    BackendChoice choice = choose_backends(*gateway_, policy_, node_cidrs_.empty() ? operators : node_cidrs_);
    if (facts_.through_nodes != choice.through_nodes) {
        facts_.through_nodes = choice.through_nodes;
        mark_all(Due::Plan);
    }
    if (gateway_->mode == model::GatewayMode::Node) {
        reported_backends_.reset();
    } else if (reported_backends_ != choice.through_nodes) {
        reported_backends_ = choice.through_nodes;
        step.backends = std::move(choice);
    }
}

void Engine::make_plans() {
    const auto plan_again = [this](Record& record) { mark(record, Due::Plan); };
    if (std::exchange(pod_cidrs_changed_, false)) {
        environment_due_ = true;
        external_ip_users_.each(plan_again);
    }
    for (const IpAddr& address : changed_cluster_ips_) {
        external_ip_users_.each_at(address, plan_again);
    }
    if (std::ranges::none_of(due_, [](const Record* record) { return record->due == Due::Plan; })) {
        return;
    }
    const Surroundings around{
        .gateway = *gateway_, .policy = policy_, .facts = facts_, .nodes = objects_.nodes};
    const ExternalIpRights rights(facts_, external_ip_rules_);
    for (Record* record : due_) {
        if (record->due != Due::Plan) {
            continue;
        }
        ServicePlan plan =
            record->object ? plan_service(*record->name, record->object, around, rights) : ServicePlan();
        owners_.replace(claims_of(record->plan), claims_of(plan));
        record->plan = std::move(plan);
    }
}

void Engine::make_decisions(Step& step) {
    for (const kube::ObjectName& name : owners_.take_contending_services()) {
        mark(records_.at(name), Due::Decision);
    }
    const auto decide_again = [this](Record& record) { mark(record, Due::Decision); };
    bool nodes_changed = std::exchange(nodes_changed_, false);
    for (const auto& changed : {std::exchange(changed_cluster_ips_, {}), owners_.take_changed_vips()}) {
        for (const IpAddr& address : changed) {
            endpoint_users_.each_at(address, decide_again);
            nodes_changed |= facts_.nodes.contains(address);
        }
    }
    if (nodes_changed && facts_.through_nodes) {
        mark_all(Due::Decision);
    }
    const bool all = std::exchange(origin_moved_, false) | std::exchange(pod_cidrs_known_changed_, false);
    if (std::exchange(node_labels_changed_, false) | all) {
        for (auto& [name, record] : records_) {
            if (all || reads_node_labels(record.plan, record.slices)) {
                mark(record, Due::Decision);
            }
        }
    }
    std::ranges::sort(due_, {},
                      [](const Record* record) -> const kube::ObjectName& { return *record->name; });
    for (Record* record : std::exchange(due_, {})) {
        decide(*record, step);
        record->due = Due::Nothing;
        if (record->object == nullptr && record->slices.empty()) {
            records_.erase(records_.find(*record->name));
        }
    }
}

void Engine::decide(Record& record, Step& step) {
    const Surroundings around{
        .gateway = *gateway_, .policy = policy_, .facts = facts_, .nodes = objects_.nodes};
    std::vector<model::Service> decided = decide_service(record.plan, owners_, record.slices, around);

    std::vector<ObjectNotice> notices;
    const auto add = [&](const model::Notice& notice) {
        notices.push_back({.kind = "Service", .object = *record.name, .notice = notice});
    };
    std::ranges::for_each(record.plan.notices.sorted(), add);
    for (const model::Service& service : decided) {
        std::ranges::for_each(service.notices, add);
    }
    sort_notices(notices);
    append_difference(record.notices, notices, step.appeared, step.gone);
    record.notices = std::move(notices);

    // Merges two sorted lists; unchanged entries keep their pointer.
    std::vector<std::shared_ptr<const model::Service>> now;
    now.reserve(decided.size());
    auto old = record.decided.begin();
    const auto remove_old = [&] {
        desired_.erase((*old)->key);
        step.remove.push_back((*old)->key);
        ++old;
    };
    for (model::Service& service : decided) {
        while (old != record.decided.end() && (*old)->key < service.key) {
            remove_old();
        }
        const bool is_known = old != record.decided.end() && (*old)->key == service.key;
        if (is_known && **old == service) {
            now.push_back(*old);
        } else {
            now.push_back(std::make_shared<const model::Service>(std::move(service)));
            desired_.insert_or_assign(now.back()->key, now.back());
            step.upsert.push_back(now.back());
            step.former.push_back(is_known ? *old : nullptr);
        }
        if (is_known) {
            ++old;
        }
    }
    while (old != record.decided.end()) {
        remove_old();
    }
    record.decided = std::move(now);
}

void Engine::read_environment(Step& step) {
    const auto node = objects_.nodes.find(gateway_->node_name);
    std::vector<ObjectNotice> notices;
    model::Environment environment;
    environment.node_ports = node_port_addresses_of(
        node == objects_.nodes.end() ? nullptr : node->second.get(), *gateway_, policy_, notices);
    environment.pod_cidrs = facts_.pod_cidrs.outermost();
    environment.rejects_closed_vip_ports = policy_.rejects_closed_vip_ports;
    if (gateway_->mode == model::GatewayMode::Node && node != objects_.nodes.end()) {
        environment.node_eligible = !is_leaving(*node->second);
        environment.vips_withheld = why_vips_withheld(node->first, *node->second, policy_);
    }
    sort_notices(notices);
    append_difference(node_port_notices_, notices, step.appeared, step.gone);
    node_port_notices_ = std::move(notices);
    if (environment_ != environment) {
        environment_ = std::move(environment);
        step.environment = environment_;
    }
}

std::vector<model::ServiceKey> Engine::audit() {
    std::vector<model::ServiceKey> differing;
    if (!gateway_) {
        return differing;
    }
    Engine fresh(policy_);
    fresh.objects_ = objects_;
    fresh.set_gateway(*gateway_);
    for (auto& [name, record] : fresh.records_) {
        for (auto& service : record.decided) {
            const auto held = desired_.find(service->key);
            if (held != desired_.end() && *held->second == *service) {
                service = held->second;
                fresh.desired_.find(service->key)->second = service;
            } else {
                differing.push_back(service->key);
            }
        }
    }
    for (const auto& [key, service] : desired_) {
        if (!fresh.desired_.contains(key)) {
            differing.push_back(key);
        }
    }
    std::ranges::sort(differing);
    *this = std::move(fresh);
    return differing;
}

}  // namespace penstock::semantics
