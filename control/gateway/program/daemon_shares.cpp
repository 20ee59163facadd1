// SPDX-License-Identifier: Apache-2.0
// Shares of several gateways (docs/adr/0041), and copies of their connections (docs/adr/0050).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "control/gateway/program/daemon.hpp"
#include "control/gateway/shares/share_snat.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

// Gateways call each other by TCP, with the certificates of their servers.
bool has_tcp(const Options& options) {
    return !std::ranges::all_of(options.listen, &ListenAddress::is_unix);
}

}  // namespace

// Before a successor takes over: a file without a valid plan ends it while the former process forwards.
// Called again if the state has changed since, with another reconciler.
Status Daemon::read_shares() {
    if (options_.shares.empty()) {
        return {};
    }
    if (plan_watch_ == nullptr) {
        PENSTOCK_TRY_IN(
            "--shares", plan_watch_,
            PlanWatch::open(
                {.file = options_.shares,
                 .saved = options_.state_file.empty() ? "" : options_.state_file + ".shares",
                 .gateway_name = options_.identity.gateway_name,
                 .obstacle = [given = options_.snat_addresses, ports = options_.ports.size()](
                                 const shares::Plan& plan) { return snat_obstacle(plan, given, ports); }}));
    }
    reconciler_->set_shares(plan_watch_->shares());
    return {};
}

// Before the caretaker's first round: no VIP is announced at the level of another gateway.
void Daemon::follow_shares() {
    if (plan_watch_ == nullptr) {
        return;
    }
    const auto announce = [this](const std::shared_ptr<const GatewayShares>& shares) {
        caretaker_->set_shares(shares, share_copies_->review_returning(*shares));
    };
    announce(plan_watch_->shares());
    if (link_duty_) {
        link_duty_->start();
    }
    const auto started =
        plan_watch_->start([this, announce](const std::shared_ptr<const GatewayShares>& shares) {
            reconciler_->set_shares(shares);
            announce(shares);
            share_copies_->set_plan(shares);
        });
    if (!started) {
        log::get("control").error("--shares: changes of the file are not applied: {}", started.error().what);
    }
}

// Of other gateways' connections, beside the tables. Workers are prepared again with the same copies.
Status Daemon::place_copies(worker::WorkerSetOptions& options) {
    const uint64_t connections = uint64_t{options_.connections} * cores_.worker_cpus.size();
    const auto capacity = options_.share_copies.value_or(
        static_cast<uint32_t>(std::min<uint64_t>(connections, copies::Store::kCapacityMax)));
    if (plan_watch_ == nullptr || !has_tcp(options_) || capacity == 0) {
        return {};
    }
    if (copies_ == nullptr) {
        PENSTOCK_TRY_IN("--share-copies", copies_, copies::Store::create(capacity, HashKey::random()));
    }
    options.copies = copies_.get();
    return {};
}

void Daemon::prepare_copies() {
    if (plan_watch_ == nullptr) {
        return;
    }
    const worker::Inspector inspector = workers_->inspect();
    share_copies_ = std::make_unique<ShareCopies>(ShareCopies::Options{
        .sender = {.shares = [this] { return plan_watch_->shares(); },
                   .tables = inspector.connection_tables(),
                   .clock = inspector.coarse_clock(),
                   .now = [inspector] { return inspector.coarse_now(); },
                   .share_age = options_.share_age,
                   .drains = [this] { return caretaker_ != nullptr && caretaker_->drained(); },
                   .holder = link_probes_ ? [this] { return link_duty_->report(); }
                                          : std::function<HolderReport()>()},
        .store = copies_.get(),
        .material = [this] { return server_->tls()->current(); },
        .is_protected = has_tcp(options_),
        .limits = [inspector] { return inspector.idle_limits(); },
        .lives =
            [inspector](const conn::Connection& copy) {
                return inspector.has_connection(copy.forward, copy.reverse);
            },
        .own_of = [inspector](const packet::FlowKey& key) { return inspector.find_connection(key); },
        .returns = handover_.is_successor() ? ShareReturn::First::Never : ShareReturn::First::AtStart,
        .former_returning = handover_.former().returning_shares(),
        .fail_back =
            options_.share_fail_back ? ShareReturn::FailBack::Automatic : ShareReturn::FailBack::ByCommand,
        .on_return = [this](uint64_t left) { caretaker_->set_returning(left); },
        .on_strays =
            [this](std::shared_ptr<const shares::Strays> strays) {
                reconciler_->forward_strays(std::move(strays));
            }});
    prepare_link_duty();
}

// On links without routers (docs/adr/0052).
void Daemon::prepare_link_duty() {
    if (!link_probes_) {
        return;
    }
    const auto mac_of = [this](NicPortId port) { return ports_[port.value]->facts().mac; };
    std::vector<MacAddr> macs;
    for (const auto& port : ports_) {
        macs.push_back(port->facts().mac);
    }
    link_duty_ = std::make_unique<LinkDuty>(LinkDuty::Options{
        .peer_of = [this](const std::string& gateway) { return holder_of(gateway); },
        .returning = [this] { return share_copies_->returning(); },
        .lose = [this](uint64_t lost) { share_copies_->lose(lost); },
        .on_held = [this](HeldShares held) { caretaker_->set_held(std::move(held)); },
        .probe = [this,
                  mac_of](const route::LinkVip& vip) { return link_probes_->send(vip, mac_of(vip.port)); },
        .receive =
            [this, macs](const std::function<void(NicPortId, const IpAddr&, const MacAddr&)>& take) {
                link_probes_->receive([&](NicPortId port, const drivers::AddressClaim& claim) {
                    if (std::ranges::find(macs, claim.mac) == macs.end()) {
                        take(port, claim.address, claim.mac);
                    }
                });
            },
        .macs = macs,
        .former_held = handover_.former().held_shares(),
        .former_plan = handover_.former().held_plan()});
}

// BFD sessions are those of the gateway's address on a link of the gateways. One that has never been up
// proves nothing.
LinkHolder::Peer Daemon::holder_of(const std::string& gateway) const {
    using Bfd = LinkHolder::Peer::Bfd;
    LinkHolder::Peer peer = share_copies_->holder_of(gateway);
    const std::shared_ptr<const GatewayShares> own = plan_watch_->shares();
    const shares::Gateway* const planned = own->plan().gateway(gateway);
    if (!bfd_ || planned == nullptr || !planned->link) {
        return peer;
    }
    for (const bfd::FrrLink::Session& session : bfd_->view().sessions) {
        if (session.peer != *planned->link || !session.refusal.empty()) {
            continue;
        }
        if (session.status.state == bfd::State::Up) {
            peer.bfd = Bfd::Up;
        } else if (peer.bfd == Bfd::None && session.times_down != 0 &&
                   session.status.state != bfd::State::AdminDown) {
            peer.bfd = Bfd::Down;
        }
    }
    return peer;
}

// The server answers by now: a gateway that is called back by another one is there.
void Daemon::exchange_copies() {
    if (share_copies_ == nullptr) {
        return;
    }
    const auto own = plan_watch_->shares();
    const shares::Gateway* planned = own->plan().gateway(own->gateway_name());
    if (planned != nullptr && !planned->address.empty() && !has_tcp(options_)) {
        log::get("control").warn(
            "the plan of shares has an address of this gateway, but --listen has no TCP address with --tls-* "
            "files: shares are unprotected, connections are not copied");
    }
    share_copies_->start();
}

}  // namespace penstock::gateway
