// SPDX-License-Identifier: Apache-2.0
// The start of a NicPort: what the started device reports of its RSS, the self-check of that report,
// isolation, and the flow rules that the device accepts. The result is the port's steering plan.
#include "drivers/flow/flow_install.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::drivers {
namespace {

// Time limit for the known packets of a loopback check. They need microseconds, or longer if the link must
// come up first. The limit bounds the start if the device loses them.
constexpr unsigned kLoopbackPatienceMs = 1000;

}  // namespace

Status NicPort::start() {
    PENSTOCK_TRY_STATUS(start_device());
    SteeringFacts found = read_steering_facts();
    if (plan_steering(*profile_, found).steering == Steering::PredictableRss) {
        PENSTOCK_TRY_STATUS(check_steering(found));
    }
    facts_.check_failed = found.check_failed;
    // Before isolation: an isolated mlx5 port does not report its RSS any more.
    facts_.flow_facts = flow_port_facts(facts_.dpdk_port, facts_.rx_queues);
    PENSTOCK_TRY_STATUS(isolate_device());
    ask_flow_support();
    found.snat_to_queue = facts_.flow_support.snat_to_queue;
    facts_.steering = plan_steering(*profile_, found);
    return {};
}

// The last step of the start, because an isolated port receives no loopback packets. The port is stopped for
// it, because mlx5 accepts isolation only then. If the device refuses, it is used without isolation, and the
// setting holds the reason.
Status NicPort::isolate_device() {
    if (!options_.isolate || !options_.flow_rules || profile_->binding != Binding::Bifurcated ||
        facts_.is_isolated) {
        return {};
    }
    stop();
    isolated_ = open_flow_driver(facts_.dpdk_port)->isolate(true);
    facts_.is_isolated = isolated_.has_value();
    note_setting(facts_.settings, {.name = "isolation",
                                   .asked = "on",
                                   .granted = isolated_ ? "on" : "off",
                                   .reason = isolated_ ? std::string() : isolated_.error().what});
    return start_device();
}

void NicPort::ask_flow_support() {
    if (options_.flow_rules) {
        const auto driver = open_flow_driver(facts_.dpdk_port);
        facts_.flow_support = probe_flow_support(*driver, *profile_, facts_.flow_facts, workers_, isolated_);
    }
}

SteeringFacts NicPort::read_steering_facts() {
    SteeringFacts found;
    found.workers = workers_;
    found.rx_queues = facts_.rx_queues;
    const std::string* const spoils =
        profile_->other_hash_if.empty() ? nullptr : device_.argument(profile_->other_hash_if);
    found.other_hash = !profile_->other_hash_reason.empty() &&
                       (profile_->other_hash_if.empty() || (spoils != nullptr && *spoils != "0"));
    if (rss_granted_) {
        found.rss = configure_rss(facts_.dpdk_port, rss_, facts_.settings);
        if (const std::string unlike = difference(*profile_, found.rss); !unlike.empty()) {
            note_setting(facts_.settings, {.name = "rss",
                                           .asked = {},
                                           .granted = unlike,
                                           .reason = "differs from the profile of " + facts_.driver});
        }
    }
    return found;
}

// Verifies the RSS that the started port reports. Errors are the device's, if it does not start again.
Status NicPort::check_steering(SteeringFacts& found) {
    const std::vector<KnownPacket> packets = known_packets(found.rss);
    const std::string all = std::to_string(packets.size());
    PortSetting setting{.name = "self-check",
                        .asked = "by computing",
                        .granted = all + " known packets predicted alike",
                        .reason = {}};
    found.check_failed = disagreement_by_computing(found.rss, packets);
    // The known packets must not reach a wire, so hardware is looped back only if its driver is known to
    // support it. A virtual device without a profile is tried.
    const bool may_loop = profile_->loops_back || (!device_.is_pci && profile_->driver.empty());
    if (found.check_failed.empty() && may_loop) {
        setting.asked = "by loopback";
        LoopbackAnswer answer;
        const Status looped = loop_back(found, packets, answer);
        if (looped) {
            found.check_failed = answer.disagreement();
            setting.granted = std::to_string(answer.returned - answer.misplaced) + " of " + all +
                              " known packets reached their queue";
        }
        if (!looped || answer.returned == 0) {
            setting.granted = "by computing: " + all + " known packets predicted alike";
            setting.reason = looped ? "no packet came back" : looped.error().what;
        }
        PENSTOCK_TRY_STATUS_IN("after the loopback", restart_device(false));
        SteeringFacts restarted = read_steering_facts();
        restarted.check_failed = std::move(found.check_failed);
        found = std::move(restarted);
    }
    if (!found.check_failed.empty()) {
        setting.reason = found.check_failed;
    }
    note_setting(facts_.settings, std::move(setting));
    return {};
}

// Starts the port with its transmit side looped back and sends the known packets. Does not restore the port.
Status NicPort::loop_back(const SteeringFacts& found, std::span<const KnownPacket> packets,
                          LoopbackAnswer& answer) {
    PENSTOCK_TRY_STATUS(restart_device(true));
    const RssReading looped = read_steering_facts().rss;
    if (looped.key != found.rss.key || looped.table != found.rss.table) {
        return fail(Errc::Unavailable, "the RSS key or table changed in loopback mode");
    }
    answer = check_by_loopback(facts_.dpdk_port, facts_.rx_queues, facts_.mac, pool_, packets,
                               kLoopbackPatienceMs);
    return {};
}

}  // namespace penstock::drivers
