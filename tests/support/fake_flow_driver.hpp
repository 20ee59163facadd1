// SPDX-License-Identifier: Apache-2.0
// Flow rules of a NIC without a NIC: stores created rules, refuses rules as configured by a test, and reports
// wrong use of a rule.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/flow/flow_install.hpp"

namespace penstock::test {

// A rule as passed from PortFlows to a driver, reduced to the fields that the fake checks.
struct SeenFlow {
    std::vector<rte_flow_item_type> items;
    std::vector<rte_flow_action_type> actions;
    [[nodiscard]] bool has(rte_flow_action_type type) const {
        return std::ranges::find(actions, type) != actions.end();
    }
};

// The test's interface; must outlive the driver.
struct FakeFlows {
    std::map<uintptr_t, SeenFlow> live;
    uintptr_t created = 0;         // number created so far; each is a handle
    std::vector<std::string> log;  // "create", "destroy", "isolate on", ...
    bool isolated = false;
    // "" accepts the rule; any other text is the driver's message.
    std::function<std::string(const SeenFlow&)> validate = [](const SeenFlow&) { return ""; };
    std::function<std::string(const SeenFlow&)> create = [](const SeenFlow&) { return ""; };
    std::function<std::string(uintptr_t)> destroy = [](uintptr_t) { return ""; };
    std::function<void()> query = [] {};
    std::string isolate_refusal[2];  // for leaving and for entering isolation
    std::map<uintptr_t, drivers::FlowHits> hits;
};

class FakeFlowDriver final : public drivers::FlowDriver {
 public:
    explicit FakeFlowDriver(FakeFlows& flows) : flows_(flows) {}

    Status validate(const drivers::CompiledFlow& flow) override {
        return answer(flows_.validate(seen(flow)));
    }
    Result<rte_flow*> create(const drivers::CompiledFlow& flow) override {
        SeenFlow as_seen = seen(flow);
        if (auto status = answer(flows_.create(as_seen)); !status) {
            return std::unexpected(status.error());
        }
        flows_.log.emplace_back("create");
        flows_.live.emplace(++flows_.created, std::move(as_seen));
        return reinterpret_cast<rte_flow*>(flows_.created);
    }
    Status destroy(rte_flow* flow) override {
        const auto handle = reinterpret_cast<uintptr_t>(flow);
        if (!flows_.live.contains(handle)) {
            return fail(Errc::Internal, "destroyed twice");
        }
        if (auto status = answer(flows_.destroy(handle)); !status) {
            return status;
        }
        flows_.log.emplace_back("destroy");
        flows_.live.erase(handle);
        return {};
    }
    Result<drivers::FlowHits> query(rte_flow* flow) override {
        const auto handle = reinterpret_cast<uintptr_t>(flow);
        if (!flows_.live.contains(handle) || !flows_.live[handle].has(RTE_FLOW_ACTION_TYPE_COUNT)) {
            return fail(Errc::Unsupported, "no counter");
        }
        flows_.query();
        return flows_.hits[handle];
    }
    Status isolate(bool on) override {
        if (auto status = answer(flows_.isolate_refusal[on ? 1 : 0]); !status) {
            return status;
        }
        flows_.log.emplace_back(on ? "isolate on" : "isolate off");
        flows_.isolated = on;
        return {};
    }

 private:
    static Status answer(const std::string& refusal) {
        if (refusal.empty()) {
            return {};
        }
        return fail(Errc::Unsupported, refusal);
    }
    static SeenFlow seen(const drivers::CompiledFlow& flow) {
        SeenFlow out;
        for (const rte_flow_item* item = flow.pattern(); item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
            out.items.push_back(item->type);
        }
        for (const rte_flow_action* action = flow.actions(); action->type != RTE_FLOW_ACTION_TYPE_END;
             ++action) {
            out.actions.push_back(action->type);
        }
        return out;
    }
    FakeFlows& flows_;
};

}  // namespace penstock::test
