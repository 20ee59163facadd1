// SPDX-License-Identifier: Apache-2.0
#include "drivers/flow/flow_install.hpp"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include <bit>
#include <cerrno>
#include <utility>
#include <vector>

#include "dataplane/nat/reply_owner.hpp"

namespace penstock::drivers {
namespace {

constexpr const char* kNoFlowRules = "the driver has no rte_flow";

const char* part_of(rte_flow_error_type type) noexcept {
    switch (type) {
        case RTE_FLOW_ERROR_TYPE_NONE:
        case RTE_FLOW_ERROR_TYPE_UNSPECIFIED:
            return "";
        case RTE_FLOW_ERROR_TYPE_HANDLE:
            return "rule";
        case RTE_FLOW_ERROR_TYPE_ATTR_GROUP:
            return "group";
        case RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY:
            return "priority";
        case RTE_FLOW_ERROR_TYPE_ATTR_INGRESS:
            return "ingress";
        case RTE_FLOW_ERROR_TYPE_ATTR_EGRESS:
            return "egress";
        case RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER:
            return "transfer";
        case RTE_FLOW_ERROR_TYPE_ATTR:
            return "attributes";
        case RTE_FLOW_ERROR_TYPE_ITEM_NUM:
            return "pattern length";
        case RTE_FLOW_ERROR_TYPE_ITEM_SPEC:
            return "item value";
        case RTE_FLOW_ERROR_TYPE_ITEM_LAST:
            return "item range";
        case RTE_FLOW_ERROR_TYPE_ITEM_MASK:
            return "item mask";
        case RTE_FLOW_ERROR_TYPE_ITEM:
            return "item";
        case RTE_FLOW_ERROR_TYPE_ACTION_NUM:
            return "number of actions";
        case RTE_FLOW_ERROR_TYPE_ACTION_CONF:
            return "action's settings";
        case RTE_FLOW_ERROR_TYPE_ACTION:
            return "action";
        case RTE_FLOW_ERROR_TYPE_STATE:
            return "state of the device";
    }
    return "";
}

class RteFlowDriver final : public FlowDriver {
 public:
    explicit RteFlowDriver(uint16_t dpdk_port) noexcept : port_(dpdk_port) {}

    Status validate(const CompiledFlow& flow) override {
        rte_flow_error error{};
        const int result =
            rte_flow_validate(port_, flow.attributes(), flow.pattern(), flow.actions(), &error);
        return status_of(result, error);
    }
    Result<rte_flow*> create(const CompiledFlow& flow) override {
        rte_flow_error error{};
        rte_flow* const created =
            rte_flow_create(port_, flow.attributes(), flow.pattern(), flow.actions(), &error);
        if (created == nullptr) {
            return std::unexpected(flow_error(-rte_errno, error));
        }
        return created;
    }
    Status destroy(rte_flow* flow) override {
        rte_flow_error error{};
        return status_of(rte_flow_destroy(port_, flow, &error), error);
    }
    Result<FlowHits> query(rte_flow* flow) override {
        rte_flow_error error{};
        rte_flow_query_count count{};
        const rte_flow_action actions[] = {{RTE_FLOW_ACTION_TYPE_COUNT, nullptr},
                                           {RTE_FLOW_ACTION_TYPE_END, nullptr}};
        PENSTOCK_TRY_STATUS(status_of(rte_flow_query(port_, flow, actions, &count, &error), error));
        return FlowHits{count.hits_set != 0 ? count.hits : 0, count.bytes_set != 0 ? count.bytes : 0};
    }
    Status isolate(bool on) override {
        rte_flow_error error{};
        return status_of(rte_flow_isolate(port_, on ? 1 : 0, &error), error);
    }

 private:
    static Status status_of(int result, const rte_flow_error& error) {
        if (result == 0) {
            return {};
        }
        return std::unexpected(flow_error(result, error));
    }
    const uint16_t port_;
};

// Creates the rule and destroys it again. A rule that cannot be destroyed counts as refused, because it could
// not be removed later either.
FlowKindSupport try_rule(FlowDriver& driver, const FlowRule& rule, const FlowPortFacts& port) {
    const auto compiled = CompiledFlow::compile(rule, port);
    if (!compiled) {
        return {false, compiled.error().what};
    }
    if (auto validated = driver.validate(**compiled); !validated) {
        return {false, validated.error().what};
    }
    auto created = driver.create(**compiled);
    if (!created) {
        return {false, "validated, but not created: " + created.error().what};
    }
    if (auto destroyed = driver.destroy(*created); !destroyed) {
        return {false, "created, but not destroyed: " + destroyed.error().what};
    }
    return {true, ""};
}

FlowKindSupport try_rules(FlowDriver& driver, std::initializer_list<FlowRule> rules,
                          const FlowPortFacts& port) {
    for (const FlowRule& rule : rules) {
        if (auto tried = try_rule(driver, rule, port); !tried.validates) {
            if (tried.reason != kNoFlowRules) {
                tried.reason = rule.match.to_string() + ": " + tried.reason;
            }
            return tried;
        }
    }
    return {true, ""};
}

}  // namespace

std::unique_ptr<FlowDriver> open_flow_driver(uint16_t dpdk_port) {
    return std::make_unique<RteFlowDriver>(dpdk_port);
}

FlowPortFacts flow_port_facts(uint16_t dpdk_port, uint16_t rx_queues) {
    FlowPortFacts facts{.rx_queues = rx_queues, .rss_types = 0, .rss_key = {}};
    rte_eth_dev_info info{};
    if (rx_queues > 1 && rte_eth_dev_info_get(dpdk_port, &info) == 0) {
        facts.rss_key.resize(info.hash_key_size);
        rte_eth_rss_conf rss{.rss_key = facts.rss_key.empty() ? nullptr : facts.rss_key.data(),
                             .rss_key_len = info.hash_key_size,
                             .rss_hf = 0};
        if (rte_eth_dev_rss_hash_conf_get(dpdk_port, &rss) == 0) {
            facts.rss_types = rss.rss_hf;
        } else {
            facts.rss_key.clear();
        }
    }
    return facts;
}

Error flow_error(int result, const rte_flow_error& error) {
    if (result == -ENOSYS) {  // ethdev's result for a driver without rte_flow
        return {Errc::Unsupported, kNoFlowRules};
    }
    std::string what = error.message != nullptr ? error.message : rte_strerror(result < 0 ? -result : EINVAL);
    if (const char* part = part_of(error.type); *part != '\0') {
        what += std::string(" (") + part + ")";
    }
    return {result == -ENOMEM || result == -ENOSPC ? Errc::Exhausted : Errc::Unsupported, std::move(what)};
}

std::optional<L4Port> snat_port_mask(unsigned workers) noexcept {
    if (!std::has_single_bit(workers) || workers > nat::kPortBlocks) {
        return std::nullopt;
    }
    return static_cast<L4Port>((workers - 1) * nat::kPortsPerBlock);
}

FlowSupport probe_flow_support(FlowDriver& driver, const PmdProfile& profile, FlowPortFacts& port,
                               unsigned workers, const Status& isolated) {
    const IpAddr nobody = IpAddr::v4(192, 0, 2, 1);  // TEST-NET-1
    const auto to_nobody = [&](uint8_t protocol, L4Port l4_port, L4Port mask) {
        return FlowMatch{.family = IpFamily::V4,
                         .destination = nobody,
                         .ip_protocol = protocol,
                         .destination_port = l4_port,
                         .destination_port_mask = mask};
    };
    FlowSupport support;
    const FlowMatch from_nobody{.family = IpFamily::V4, .source = *Prefix::make(nobody, 24)};
    support.source_drop =
        try_rules(driver, {{FlowKind::SourceDrop, from_nobody, {FlowVerb::Drop, 0}, false}}, port);
    support.counts =
        try_rule(driver, {FlowKind::SourceDrop, from_nobody, {FlowVerb::Drop, 0}, true}, port).validates;

    if (const auto mask = snat_port_mask(workers); workers == 1) {
        support.snat_to_queue.reason = "one worker owns everything";
    } else if (!mask) {
        support.snat_to_queue.reason =
            std::to_string(workers) +
            " workers are not a power of two, so no mask separates their SNAT ports";
    } else if (port.rx_queues < workers) {
        support.snat_to_queue.reason =
            std::to_string(port.rx_queues) + " receive queues for " + std::to_string(workers) + " workers";
    } else {
        const FlowAction last{FlowVerb::ToQueue, workers - 1};
        support.snat_to_queue =
            try_rules(driver,
                      {{FlowKind::SnatToQueue, to_nobody(kIpTcp, *mask, *mask), last, false},
                       {FlowKind::SnatToQueue, to_nobody(kIpUdp, *mask, *mask), last, false}},
                      port);
    }

    if (profile.binding != Binding::Bifurcated) {
        support.vip_isolate.reason =
            "the kernel does not share this port: packets that belong to no flow go to its twin";
    } else if (!isolated) {
        support.vip_isolate.reason = "the port cannot be isolated: " + isolated.error().what;
    } else {
        const FlowMatch arp{.ether_type = kEtherTypeArp};
        support.vip_isolate =
            try_rules(driver,
                      {{FlowKind::VipIsolate, to_nobody(0, 0, 0), {FlowVerb::Spread, 0}, false},
                       {FlowKind::VipIsolate, arp, {FlowVerb::ToQueue, 0}, false}},
                      port);
    }

    for (const bool spreads : {false, true}) {
        port.mark_spreads = spreads;
        support.vip_mark = try_rules(
            driver, {{FlowKind::VipMark, to_nobody(kIpTcp, 80, 0xffff), {FlowVerb::Mark, 1}, false}}, port);
        if (support.vip_mark.validates) {
            break;
        }
    }
    return support;
}

PortFlows::~PortFlows() {
    // The result cannot be reported here. A caller that needs it calls clear() before.
    [[maybe_unused]] const Status cleared = clear();
}

Result<PortFlows::Installed> PortFlows::make(const FlowRule& rule) {
    if (rule.is_isolation()) {
        PENSTOCK_TRY_STATUS(driver_->isolate(true));
        return Installed{};
    }
    for (FlowRule attempt = rule;; attempt.counted = false) {
        PENSTOCK_TRY(const auto compiled, CompiledFlow::compile(attempt, facts_));
        auto validated = driver_->validate(*compiled);
        auto created = validated ? driver_->create(*compiled) : std::unexpected(validated.error());
        if (created) {
            return Installed{*created, attempt.counted};
        }
        if (!attempt.counted) {
            return std::unexpected(created.error());
        }
    }
}

Status PortFlows::unmake(const FlowRule& rule, const Installed& installed) {
    if (rule.is_isolation()) {
        return driver_->isolate(false);
    }
    return driver_->destroy(installed.handle);
}

Status PortFlows::add(const FlowRule& rule) {
    if (installed_.contains(rule)) {
        return {};
    }
    PENSTOCK_TRY(auto made, make(rule));
    installed_.emplace(rule, made);
    return {};
}

Status PortFlows::remove(const FlowRule& rule) {
    const auto found = installed_.find(rule);
    if (found == installed_.end()) {
        return {};
    }
    PENSTOCK_TRY_STATUS(unmake(rule, found->second));
    installed_.erase(found);
    return {};
}

Status PortFlows::clear() {
    Status first;
    // Isolation last: as long as it is on, frames that lose their rule go to the kernel, and not to queues
    // that are not polled any more.
    std::vector<FlowRule> rules;
    rules.reserve(installed_.size());
    for (const auto& [rule, installed] : installed_) {
        rules.insert(rule.is_isolation() ? rules.end() : rules.begin(), rule);
    }
    for (const FlowRule& rule : rules) {
        if (auto removed = remove(rule); !removed && first) {
            first = in_context(rule.match.to_string(), removed.error());
        }
    }
    return first;
}

std::optional<FlowHits> PortFlows::hits(const FlowRule& rule) const {
    const auto found = installed_.find(rule);
    if (found == installed_.end() || !found->second.counted || found->second.handle == nullptr) {
        return std::nullopt;
    }
    const auto hits = driver_->query(found->second.handle);
    return hits ? std::optional(*hits) : std::nullopt;
}

}  // namespace penstock::drivers
