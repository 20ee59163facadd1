// SPDX-License-Identifier: Apache-2.0
#include "control/bfd/session_book.hpp"

#include <algorithm>
#include <utility>

#include "dataplane/base/limits.hpp"

namespace penstock::bfd {
namespace {

constexpr uint8_t kHopsMax = 255;

bool holds(const Twin::Subnet& subnet, const IpAddr& address) {
    const auto prefix = Prefix::make(subnet.address, subnet.prefix_length);
    return prefix && prefix->contains(address);
}

const Twin* find_twin(const SessionRequest& request, const std::vector<Twin>& twins) {
    const auto found = std::ranges::find_if(twins, [&](const Twin& twin) {
        return request.interface.empty() ? std::ranges::any_of(twin.subnets,
                                                               [&](const Twin::Subnet& subnet) {
                                                                   return holds(subnet, request.peer);
                                                               })
                                         : twin.name == request.interface;
    });
    return found == twins.end() ? nullptr : &*found;
}

// The address of the gateway on the subnet of the peer.
std::optional<IpAddr> local_address(const Twin& twin, const IpAddr& peer) {
    const auto on_subnet =
        std::ranges::find_if(twin.subnets, [&](const Twin::Subnet& subnet) { return holds(subnet, peer); });
    return on_subnet == twin.subnets.end() ? std::nullopt : std::optional(on_subnet->address);
}

struct Resolved {
    Terms terms;
    std::string twin;
    std::string refusal;
};

Resolved resolve(const SessionRequest& request, const std::vector<Twin>& twins) {
    Resolved out{.terms = {.discriminator = request.discriminator,
                           .local = request.local,
                           .peer = request.peer,
                           .egress = {},
                           .is_passive = request.is_passive,
                           .is_shut_down = request.is_shut_down,
                           .control_plane_independent = request.control_plane_independent,
                           .ttl_min = request.is_multihop ? request.ttl_min : kHopsMax,
                           .detect_multiplier = request.detect_multiplier,
                           .desired_min_tx_us = request.min_tx_us,
                           .required_min_rx_us = request.min_rx_us},
                 .twin = {},
                 .refusal = {}};
    const auto refuse = [&](std::string why) {
        out.refusal = std::move(why);
        return out;
    };
    if (request.is_other_kind) {
        return refuse("seamless BFD and SRv6 are not supported");
    }
    if (request.discriminator == 0 || request.detect_multiplier == 0 || request.min_tx_us == 0) {
        return refuse("discriminator, detection multiplier and interval must not be 0");
    }
    if (request.peer.is_unspecified()) {
        return refuse("it has no peer");
    }
    // Among others, an IPv4-mapped address in a session of IPv6.
    if (!request.local.is_unspecified() && request.local.family() != request.peer.family()) {
        return refuse("its addresses are of different families");
    }
    if (request.is_multihop) {
        return request.local.is_unspecified() ? refuse("a multihop session needs a local address") : out;
    }
    const Twin* const twin = find_twin(request, twins);
    if (twin == nullptr) {
        return refuse(request.interface.empty() ? "its peer is on the subnet of no twin"
                                                : "interface " + request.interface + " is no twin");
    }
    out.twin = twin->name;
    out.terms.egress = twin->port;
    if (request.local.is_unspecified()) {
        const auto local = local_address(*twin, request.peer);
        if (!local) {
            return refuse("twin " + twin->name + " has no address on its peer's subnet");
        }
        out.terms.local = *local;
    }
    return out;
}

}  // namespace

size_t SessionBook::running() const {
    return static_cast<size_t>(
        std::ranges::count_if(entries_, [](const auto& entry) { return entry.second.view.refusal.empty(); }));
}

std::vector<Order> SessionBook::remove(uint32_t discriminator) {
    const auto found = entries_.find(discriminator);
    if (found == entries_.end()) {
        return {};
    }
    const bool ran = found->second.view.refusal.empty();
    Order order{.kind = Order::Kind::Remove, .terms = found->second.terms, .former = {}};
    entries_.erase(found);
    return ran ? std::vector<Order>{order} : std::vector<Order>{};
}

std::vector<Order> SessionBook::request(const SessionRequest& request, const std::vector<Twin>& twins,
                                        Clock::time_point now) {
    if (request.removes) {
        return remove(request.discriminator);
    }
    Resolved resolved = resolve(request, twins);
    const auto known = entries_.find(request.discriminator);
    const bool ran = known != entries_.end() && known->second.view.refusal.empty();
    std::vector<Order> orders;
    Entry entry;
    entry.view.changed_at = now;
    if (known != entries_.end()) {
        entry = known->second;
    }
    if (!ran && resolved.refusal.empty()) {
        // The daemon has restarted and names its sessions anew.
        const auto same = std::ranges::find_if(entries_, [&](const auto& each) {
            return each.second.is_orphaned && each.second.view.refusal.empty() &&
                   each.second.terms.is_same_session(resolved.terms);
        });
        if (same != entries_.end()) {
            entry = same->second;
            entries_.erase(same);
        } else if (running() == limits::kBfdSessionsMax) {
            resolved.refusal = "there are " + std::to_string(limits::kBfdSessionsMax) + " sessions already";
        }
    }
    if (ran && (!resolved.refusal.empty() || !entry.terms.is_same_session(resolved.terms))) {
        orders.push_back({.kind = Order::Kind::Remove, .terms = entry.terms, .former = {}});
        entry.view.status = {};
    }
    entry.is_orphaned = false;
    entry.terms = resolved.terms;
    entry.view.discriminator = request.discriminator;
    entry.view.twin = resolved.twin;
    entry.view.local = resolved.terms.local;
    entry.view.peer = request.peer;
    entry.view.min_tx_us = request.min_tx_us;
    entry.view.min_rx_us = request.min_rx_us;
    entry.view.detect_multiplier = request.detect_multiplier;
    entry.view.refusal = resolved.refusal;
    if (resolved.refusal.empty()) {
        orders.push_back({.kind = Order::Kind::Put, .terms = resolved.terms, .former = {}});
    }
    entries_.insert_or_assign(request.discriminator, std::move(entry));
    return orders;
}

bool SessionBook::change(const Change& change, Clock::time_point now) {
    const auto found = entries_.find(change.discriminator);
    if (found == entries_.end()) {
        return false;
    }
    SessionView& view = found->second.view;
    if (view.status.state != change.status.state) {
        view.times_down += view.status.state == State::Up ? 1 : 0;
        view.changed_at = now;
    }
    view.status = change.status;
    return true;
}

void SessionBook::orphan_all() {
    for (auto& [discriminator, entry] : entries_) {
        entry.is_orphaned = true;
    }
}

std::vector<Order> SessionBook::end_orphans() {
    std::vector<Order> orders;
    std::erase_if(entries_, [&](const auto& each) {
        const Entry& entry = each.second;
        if (entry.is_orphaned && entry.view.refusal.empty()) {
            orders.push_back({.kind = Order::Kind::Remove, .terms = entry.terms, .former = {}});
        }
        return entry.is_orphaned;
    });
    return orders;
}

std::vector<SessionBook::Kept> SessionBook::kept() const {
    std::vector<Kept> all;
    for (const auto& [discriminator, entry] : entries_) {
        if (entry.view.refusal.empty()) {
            all.push_back({entry.terms, entry.view.status, entry.view.twin});
        }
    }
    return all;
}

std::vector<Order> SessionBook::resume(const std::vector<Kept>& former, Clock::time_point now) {
    std::vector<Order> orders;
    for (const Kept& kept : former) {
        if (running() == limits::kBfdSessionsMax) {
            break;
        }
        Entry entry;
        entry.terms = kept.terms;
        entry.view = {.discriminator = kept.terms.discriminator,
                      .twin = kept.twin,
                      .local = kept.terms.local,
                      .peer = kept.terms.peer,
                      .min_tx_us = kept.terms.desired_min_tx_us,
                      .min_rx_us = kept.terms.required_min_rx_us,
                      .detect_multiplier = kept.terms.detect_multiplier,
                      .status = kept.status,
                      .refusal = {},
                      .times_down = 0,
                      .changed_at = now};
        entries_.insert_or_assign(kept.terms.discriminator, entry);
        orders.push_back({.kind = Order::Kind::Put, .terms = kept.terms, .former = kept.status});
    }
    return orders;
}

std::optional<SessionView> SessionBook::session(uint32_t discriminator) const {
    const auto found = entries_.find(discriminator);
    return found == entries_.end() ? std::nullopt : std::optional(found->second.view);
}

std::vector<SessionView> SessionBook::sessions() const {
    std::vector<SessionView> all;
    for (const auto& [discriminator, entry] : entries_) {
        all.push_back(entry.view);
    }
    return all;
}

}  // namespace penstock::bfd
