// SPDX-License-Identifier: Apache-2.0
// The rules of one started NicPort: installation, hit counts, removal. If the driver refuses a rule, its own
// message is the reason. The port must stay started as long as it has rules, because not every driver keeps
// them over a stop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/base/result.hpp"
#include "drivers/flow/flow_compile.hpp"
#include "drivers/flow/flow_rule.hpp"
#include "drivers/pmd/profiles.hpp"
#include "drivers/port/capabilities.hpp"

struct rte_flow;

namespace penstock::drivers {

struct FlowHits {
    uint64_t packets = 0;
    uint64_t bytes = 0;
};

// The rte_flow operations of one port. Errors hold the driver's message and the part of the rule that it
// refers to. One thread at a time.
class FlowDriver {
 public:
    virtual ~FlowDriver() = default;
    virtual Status validate(const CompiledFlow& flow) = 0;
    virtual Result<rte_flow*> create(const CompiledFlow& flow) = 0;
    virtual Status destroy(rte_flow* flow) = 0;
    virtual Result<FlowHits> query(rte_flow* flow) = 0;
    virtual Status isolate(bool on) = 0;
};
// Of a DPDK port, which must outlive it.
[[nodiscard]] std::unique_ptr<FlowDriver> open_flow_driver(uint16_t dpdk_port);

// Of a started port. If a device does not report its RSS, rules spread by the driver's default.
[[nodiscard]] FlowPortFacts flow_port_facts(uint16_t dpdk_port, uint16_t rx_queues);

// "no room in the table (action)": a driver's message and the part of the rule that it names. `result` is
// rte_flow's, negative.
[[nodiscard]] Error flow_error(int result, const rte_flow_error& error);

// The kinds of rule that the port accepts. Each kind is tried with one rule for a documentation address (RFC
// 5737), which is destroyed at once. Validating alone is not sufficient (net_tap validates port masks, and
// refuses to create them). `workers` determines the mask of SNAT ports. `isolated` is the result of isolating
// the port, if that was requested. If MARK with PASSTHRU is refused, MARK with RSS is tried;
// `port.mark_spreads` records which one was accepted.
[[nodiscard]] FlowSupport probe_flow_support(FlowDriver& driver, const PmdProfile& profile,
                                             FlowPortFacts& port, unsigned workers,
                                             const Status& isolated = {});

// The mask of the L4 port that distinguishes the workers' blocks of 64 SNAT ports (nat/reply_owner.hpp).
// Empty if the number of workers is not a power of two: then no mask can.
[[nodiscard]] std::optional<L4Port> snat_port_mask(unsigned workers) noexcept;

// One thread at a time.
class PortFlows {
 public:
    PortFlows(std::unique_ptr<FlowDriver> driver, FlowPortFacts facts)
        : driver_(std::move(driver)), facts_(std::move(facts)) {}
    ~PortFlows();  // clear()
    PortFlows(const PortFlows&) = delete;
    PortFlows& operator=(const PortFlows&) = delete;

    // Installs the rule. No effect if it is installed already. A port that cannot count gets the rule
    // uncounted. Errors are the driver's; then nothing has changed.
    Status add(const FlowRule& rule);
    // Destroys the rule. No error if it is not installed. An error means that the NIC still has the rule: it
    // stays in installed(), and another call tries again.
    Status remove(const FlowRule& rule);
    // Destroys all rules. If one fails, the rest are destroyed nevertheless. Returns the first error.
    Status clear();

    // The device was removed, and its rules with it: the driver is not called any more.
    void forget() noexcept { installed_.clear(); }

    // The port was isolated before it was started: from now on isolation is one of its rules.
    void note_isolated() { installed_.emplace(FlowRule::isolation(), Installed{}); }

    struct Installed {
        rte_flow* handle = nullptr;  // null for isolation
        bool counted = false;
    };
    [[nodiscard]] const std::map<FlowRule, Installed>& installed() const noexcept { return installed_; }
    // Empty if the rule is not counted.
    [[nodiscard]] std::optional<FlowHits> hits(const FlowRule& rule) const;

    [[nodiscard]] FlowDriver& driver() noexcept { return *driver_; }
    [[nodiscard]] const FlowPortFacts& facts() const noexcept { return facts_; }

 private:
    Result<Installed> make(const FlowRule& rule);
    Status unmake(const FlowRule& rule, const Installed& installed);

    const std::unique_ptr<FlowDriver> driver_;
    const FlowPortFacts facts_;
    std::map<FlowRule, Installed> installed_;
};

}  // namespace penstock::drivers
