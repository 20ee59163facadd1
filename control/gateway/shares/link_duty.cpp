// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/link_duty.hpp"

#include <algorithm>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

std::string list_of(uint64_t shares) {
    std::string list;
    for (size_t number = 0; number < shares::kSharesMax; ++number) {
        if ((shares >> number & 1) != 0) {
            list += (list.empty() ? "" : ", ") + std::to_string(number);
        }
    }
    return list;
}

// Of two plans: those with the same number, addresses and gateways.
uint64_t same_shares(const shares::Plan& one, const shares::Plan& other) {
    uint64_t same = 0;
    for (size_t number = 0; number < std::min(one.shares.size(), other.shares.size()); ++number) {
        same |= uint64_t{one.shares[number] == other.shares[number]} << number;
    }
    // The hash of VIPs selects a share by their number.
    return one.shares.size() == other.shares.size() ? same : 0;
}

}  // namespace

LinkDuty::LinkDuty(Options options) : options_(std::move(options)) {
    report_.plan_version = options_.former_plan;
    report_.held = options_.former_held;
    report_.macs = options_.macs;
}

LinkDuty::~LinkDuty() {
    stop();
}

void LinkDuty::start() {
    thread_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
}

void LinkDuty::stop() {
    thread_ = {};
}

void LinkDuty::set(LinkShares facts) {
    const std::lock_guard lock(mutex_);
    facts_ = std::move(facts);
}

HolderReport LinkDuty::report() const {
    const std::lock_guard lock(mutex_);
    HolderReport report = report_;
    report.held |= facts_.answered;
    return report;
}

uint64_t LinkDuty::held() const {
    const std::lock_guard lock(mutex_);
    return report_.held;
}

void LinkDuty::run(const std::stop_token& stopped) {
    std::mutex mutex;
    std::condition_variable_any wakes;
    std::unique_lock lock(mutex);
    while (!stopped.stop_requested()) {
        work(std::chrono::steady_clock::now());
        rounds_.fetch_add(1, std::memory_order_relaxed);
        wakes.wait_for(lock, stopped, kRound, [] { return false; });
    }
}

void LinkDuty::work(LinkHolder::Time now) {
    LinkShares facts;
    {
        const std::lock_guard lock(mutex_);
        facts = facts_;
    }
    if (facts.shares == nullptr) {
        return;
    }
    const shares::Plan& plan = facts.shares->plan();
    if (!std::exchange(has_begun_, true) && plan.version == options_.former_plan) {
        holder_.resume(options_.former_held);
    }
    if (held_.shares != nullptr && held_.shares != facts.shares) {
        holder_.keep(same_shares(held_.shares->plan(), plan));
    }
    std::map<std::string, LinkHolder::Peer> peers;
    for (const shares::Gateway& gateway : plan.gateways) {
        if (plan.common_shares(facts.shares->gateway_name(), gateway.name) == 0) {
            continue;
        }
        LinkHolder::Peer peer = options_.peer_of(gateway.name);
        if (peer.report.plan_version != plan.version) {
            peer.is_reporting = false;
            peer.silent_since = {};  // its messages do not prove that it answers
        }
        peers.emplace(gateway.name, std::move(peer));
    }
    probes_.set(holder_.to_probe(), facts.targets, now);
    receive_claims(*facts.shares, peers, now);
    log_claims(probes_.answered());
    const uint64_t before = holder_.held();
    const uint64_t lost = holder_.update(
        *facts.shares, [&](const std::string& gateway) { return peers[gateway]; },
        {.able = facts.able,
         .whole = facts.whole,
         .returning = options_.returning(),
         .on_link = probes_.on_link(),
         .answered = probes_.answered(),
         .unanswered = probes_.unanswered(now),
         .unanswered_since = probes_.unanswered_since()},
        now);
    if (lost != 0) {
        log::get("control").warn(
            "shares {}: the other gateway has answered on the links meanwhile; this one returns to them",
            list_of(lost));
        options_.lose(lost);
    }
    // Before the workers answer, and after they have ceased to, the share counts as held (report()).
    {
        const std::lock_guard lock(mutex_);
        report_.plan_version = plan.version;
        report_.able = facts.able;
        report_.ready = holder_.ready();
        report_.held = holder_.held();
        report_.served = holder_.served();
    }
    const HeldShares held{facts.shares, holder_.held()};
    if (held != held_) {
        log_changes(*facts.shares, before, holder_.held());
        held_ = held;
        options_.on_held(held_);
    }
    probes_.set(holder_.to_probe(), facts.targets, now);
    for (const LinkTarget& target : probes_.due(now)) {
        if (options_.probe(target.vip)) {
            probes_.sent(target, now);
        }
    }
}

// A claim counts if it is of the other gateway of the share, or if the Ethernet addresses of that gateway are
// not known. No other host of the link can end the service of an heir.
void LinkDuty::receive_claims(const GatewayShares& shares,
                              const std::map<std::string, LinkHolder::Peer>& peers, LinkHolder::Time now) {
    options_.receive([&](NicPortId port, const IpAddr& address, const MacAddr& mac) {
        for (const LinkTarget& target : probes_.targets()) {
            if (target.vip.port != port || target.vip.address != address) {
                continue;
            }
            const shares::Share& planned = shares.plan().shares[target.share];
            const bool is_primary = planned.primary == shares.gateway_name();
            const auto other = peers.find(is_primary ? planned.heir : planned.primary);
            const std::vector<MacAddr> macs =
                other == peers.end() ? std::vector<MacAddr>() : other->second.report.macs;
            if (macs.empty() || std::ranges::find(macs, mac) != macs.end()) {
                probes_.claimed(target, now);
            }
        }
    });
}

void LinkDuty::log_changes(const GatewayShares& shares, uint64_t before, uint64_t now) const {
    auto& logger = log::get("control");
    for (const shares::Role role : {shares::Role::Primary, shares::Role::Heir, shares::Role::None}) {
        uint64_t with_role = 0;
        for (size_t number = 0; number < shares.plan().shares.size(); ++number) {
            const bool has_role = shares.part_in(static_cast<uint8_t>(number)).role == role;
            with_role |= uint64_t{has_role} << number;
        }
        if (const uint64_t begun = now & ~before & with_role; begun != 0) {
            logger.info("shares {}: held on the links, as {}", list_of(begun), to_string(role));
        }
        if (const uint64_t ended = before & ~now & with_role; ended != 0) {
            logger.info("shares {}: no longer held on the links, as {}", list_of(ended), to_string(role));
        }
    }
}

// Once for each share, until it has not answered.
void LinkDuty::log_claims(uint64_t claimed) {
    const uint64_t appeared = claimed & ~std::exchange(claimed_, claimed);
    if (appeared != 0) {
        log::get("control").info("shares {}: the other gateway answers for them on a link",
                                 list_of(appeared));
    }
}

}  // namespace penstock::gateway
