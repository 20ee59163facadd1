// Rules on one started NicPort: put there, counted, taken away; what the driver refuses keeps the driver's own words as its reason.
// The port stays started as long as it has rules: not every driver keeps them over a stop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/base/result.hpp"
#include "drivers/flow/flow_compile.hpp"
#include "drivers/flow/flow_rule.hpp"
#include "drivers/port/capabilities.hpp"

struct rte_flow;

namespace penstock::drivers {

struct FlowHits {
    uint64_t packets = 0;
    uint64_t bytes = 0;
};

// What rte_flow offers of one port. Errors hold the driver's message and which part of the rule it is about. One thread at a time.
class FlowDriver {
 public:
    virtual ~FlowDriver() = default;
    virtual Status validate(const CompiledFlow& flow) = 0;
    virtual Result<rte_flow*> create(const CompiledFlow& flow) = 0;
    virtual Status destroy(rte_flow* flow) = 0;
    virtual Result<FlowHits> query(rte_flow* flow) = 0;
    virtual Status isolate(bool on) = 0;
};
// Of a DPDK port; which must outlive it.
[[nodiscard]] std::unique_ptr<FlowDriver> open_flow_driver(uint16_t dpdk_port);

// Of a started port. A device that does not tell its RSS spreads by the driver's default.
[[nodiscard]] FlowPortFacts flow_port_facts(uint16_t dpdk_port, uint16_t rx_queues);

// "no room in the table (action)": a driver's message and the part of the rule that it names. `result` is rte_flow's, negative.
[[nodiscard]] Error flow_error(int result, const rte_flow_error& error);

// Which kinds of rule the port takes. Each is tried with one rule for an address that belongs on no wire (RFC 5737), which is destroyed at
// once: validating alone does not tell (net_tap validates port masks, and refuses to create them). `workers` decides about the mask of
// SNAT ports; `isolated` is what came of isolating the port, where that was asked for. Where MARK is refused with the search going on, RSS
// beside it is tried, and `port.mark_spreads` says which it was.
[[nodiscard]] FlowSupport probe_flow_support(FlowDriver& driver, const PmdProfile& profile,
                                             FlowPortFacts& port, unsigned workers,
                                             const Status& isolated = {});

// The mask of the L4 port by which a worker's blocks of 64 SNAT ports are told (nat/reply_owner.hpp); empty where workers are no power of
// two: then no mask does.
[[nodiscard]] std::optional<L4Port> snat_port_mask(unsigned workers) noexcept;

// One thread at a time.
class PortFlows {
 public:
    PortFlows(std::unique_ptr<FlowDriver> driver, FlowPortFacts facts)
        : driver_(std::move(driver)), facts_(std::move(facts)) {}
    ~PortFlows();  // clear()
    PortFlows(const PortFlows&) = delete;
    PortFlows& operator=(const PortFlows&) = delete;

    // Makes the rule; one that is there already is left alone. A port that cannot count gets it uncounted. Errors are the driver's; then
    // nothing has changed.
    Status add(const FlowRule& rule);
    // Destroys it; one that is not there is no error. An error means that the NIC still has it: it stays among the installed, and another
    // call tries again.
    Status remove(const FlowRule& rule);
    // Destroys all, also after a part of them failed: the rest are destroyed all the same. The first error.
    Status clear();

    // The device is gone, and its rules with it: nothing is asked of the driver any more.
    void forget() noexcept { installed_.clear(); }

    // The port was isolated before it was started: from now on isolation is one of its rules.
    void note_isolated() { installed_.emplace(FlowRule::isolation(), Installed{}); }

    struct Installed {
        rte_flow* handle = nullptr;  // null for isolation
        bool counted = false;
    };
    [[nodiscard]] const std::map<FlowRule, Installed>& installed() const noexcept { return installed_; }
    // Empty where nobody counts.
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
