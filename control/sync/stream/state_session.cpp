// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/state_session.hpp"

#include <algorithm>
#include <utility>

#include "control/rpc/convert.hpp"

namespace penstock::sync {
namespace {

bool has_same_endpoints(const kube::EndpointSlice& former, const kube::EndpointSlice& current) {
    return former.meta.labels == current.meta.labels && former.address_type == current.address_type &&
           former.ports == current.ports &&
           std::ranges::equal(former.endpoints, current.endpoints, {}, &kube::Endpoint::address,
                              &kube::Endpoint::address);
}

// Complete: only conditions of endpoints that `objects` already has, as when a Pod becomes ready. An endpoint
// that moves between slices disappears from one of them and appears in the other.
Extent extent_of(const kube::Changes& changes, const kube::Objects& objects) {
    const bool is_slices_only = !changes.slices.empty() && changes.services.empty() &&
                                changes.nodes.empty() && changes.pools.empty() &&
                                changes.namespaces.empty() && !changes.pools_listed &&
                                !changes.namespaces_listed && changes.held_addresses.empty();
    const auto is_known = [&](const auto& change) {
        const auto former = objects.slices.find(change.first);
        return change.second != nullptr && former != objects.slices.end() &&
               has_same_endpoints(*former->second, *change.second);
    };
    return is_slices_only && std::ranges::all_of(changes.slices, is_known) ? Extent::Complete : Extent::Open;
}

}  // namespace

void StateSession::Lacks::add(const Lacks& other) {
    keys.insert(other.keys.begin(), other.keys.end());
    environment |= other.environment;
    everything |= other.everything;
    beyond_keys |= other.beyond_keys;
    if (other.since) {
        since = std::min(since.value_or(*other.since), *other.since);
    }
}

StateSession::StateSession(Settings settings, Observer* observer)
    : source_(std::move(settings.source)),
      audit_period_(settings.audit_period),
      observer_(observer),
      engine_(std::move(settings.policy)),
      coalescer_(settings.coalesce),
      held_losses_(settings.coalesce.count() == 0 ? std::chrono::milliseconds(0) : kLossWait) {}

void StateSession::on_changes(kube::Changes changes, Time now) {
    const Extent extent = extent_of(changes, engine_.objects());
    pending_.merge(std::move(changes));
    coalescer_.on_change(now, extent);
}

void StateSession::on_stream_opened() {
    identified_ = false;
}

void StateSession::on_stream_ended() {
    identified_ = false;
    outgoing_.reset();
    if (in_flight_) {
        unanswered_ = std::exchange(in_flight_, std::nullopt);
    }
}

void StateSession::on_refused_stream() {
    applied_.reset();
    forget_unanswered();
}

void StateSession::forget_unanswered() {
    if (unanswered_) {
        lacks_.add(unanswered_->carries);
        unanswered_.reset();
    }
}

Status StateSession::on_identity(const v1::Identity& message, Time now) {
    PENSTOCK_TRY_IN("identity", auto identity, rpc::from_proto(message));
    if (!identified_) {
        // Only the first identity of a stream states which version the gateway has. A later one may have been
        // sent before our last message arrived.
        const auto has = [&](std::optional<uint64_t> version) {
            return version && message.applied_source() == source_ && message.applied_version() == *version;
        };
        if (unanswered_ && has(unanswered_->version)) {
            arrived(*std::exchange(unanswered_, std::nullopt), now);
        } else if (!has(applied_)) {
            applied_.reset();
        }
        forget_unanswered();
        identified_ = true;
        identified_at_ = now;
        say(LogLine::Level::Info,
            std::string("connected: ") + model::to_string(identity.mode) + " mode" +
                (identity.node_name.empty() ? "" : ", node " + identity.node_name) + ", penstockd " +
                message.software_version() +
                (applied_ ? ", has version " + std::to_string(*applied_) : ", a full state is needed"));
    }
    if (identity_ != identity) {
        identity_ = std::move(identity);
        if (objects_known_) {
            absorb(engine_.set_gateway(*identity_), now, now);
        }
    }
    return {};
}

void StateSession::on_external_ip_rules(std::vector<semantics::ExternalIpRule> rules, Time now) {
    semantics::Policy policy = engine_.policy();
    policy.external_ip_rules = std::move(rules);
    absorb(engine_.set_policy(std::move(policy)), now, now);
}

void StateSession::work_in_changes(Time now) {
    const auto due = coalescer_.due();
    // Pending changes may contain the replacement that a held loss waits for, so they are processed first.
    const bool loss_is_due = held_losses_.due() && *held_losses_.due() <= now;
    if (due && (*due <= now || loss_is_due)) {
        take_in_changes(now);
    }
    for (const auto& [key, heard] : held_losses_.take_due(now)) {
        note_lack({key}, false, heard);
    }
}

void StateSession::take_in_changes(Time now) {
    const Time heard = *coalescer_.oldest();
    coalescer_.on_taken(now);
    const kube::Changes changes = std::exchange(pending_, {});
    absorb(engine_.apply(changes), heard, now);
    if (!std::exchange(objects_known_, true) && identity_) {
        // Not earlier: before the Node list has arrived, the notice "no Node has this name" would be
        // reported.
        absorb(engine_.set_gateway(*identity_), heard, now);
    }
    if (const auto unheard = std::exchange(unheard_, std::nullopt)) {
        on_observed(*unheard);
    }
}

void StateSession::absorb(const semantics::Step& step, Time heard, Time now) {
    for (const auto& about : step.appeared) {
        ++counters_.notices[about.notice.reason];
        report_appeared(about);
    }
    for (const auto& about : step.gone) {
        report_gone(about);
    }
    if (step.backends) {
        say(LogLine::Level::Info, step.backends->why);
    }
    std::vector<model::ServiceKey> different = step.remove;
    for (const model::ServiceKey& key : step.remove) {
        held_losses_.on_removed(key);
    }
    Time since = heard;
    for (size_t i = 0; i < step.upsert.size(); ++i) {
        if (const auto change = held_losses_.on_change(step.former[i], step.upsert[i], heard, now)) {
            different.push_back(step.upsert[i]->key);
            since = std::min(since, *change);
        }
    }
    note_lack(different, step.environment.has_value(), since);
}

void StateSession::note_lack(const std::vector<model::ServiceKey>& keys, bool with_environment, Time heard) {
    if (keys.empty() && !with_environment) {
        return;
    }
    lacks_.since = std::min(lacks_.since.value_or(heard), heard);
    lacks_.environment |= with_environment;
    if (lacks_.everything || (!applied_ && !in_flight_ && !unanswered_)) {
        lacks_.beyond_keys = true;  // the next message is a full state anyway
        return;
    }
    lacks_.keys.insert(keys.begin(), keys.end());
    if (lacks_.keys.size() > kDirtyFloor + engine_.desired().size()) {
        lacks_.everything = true;
        lacks_.beyond_keys = true;
        lacks_.keys.clear();
    }
}

std::shared_ptr<const model::Service> StateSession::offered(const model::ServiceKey& key) const {
    if (auto former = held_losses_.former_of(key)) {
        return former;
    }
    const auto service = engine_.desired().find(key);
    return service == engine_.desired().end() ? nullptr : service->second;
}

std::optional<v1::StateMessage> StateSession::next(Time now) {
    if (!outgoing_) {
        work_in_changes(now);
        if (!identified_ || !objects_known_ || in_flight_) {
            return std::nullopt;
        }
        if (audit_due_ && *audit_due_ <= now) {
            audit(now);
        }
        if (!applied_ || lacks_.everything) {
            begin_full_state(now);
        } else if (lacks_.since) {
            begin_delta(now);
        } else {
            return std::nullopt;
        }
    }
    v1::StateMessage part = outgoing_->next_part();
    if (outgoing_->is_done()) {
        outgoing_.reset();
    }
    return part;
}

std::optional<StateSession::Time> StateSession::due() const {
    auto due = coalescer_.due();
    if (const auto loss = held_losses_.due()) {
        due = std::min(due.value_or(*loss), *loss);
    }
    if (audit_due_ && identified_ && !in_flight_) {
        due = due ? std::min(*due, *audit_due_) : *audit_due_;
    }
    return due;
}

// Checks both sides: this side's state is evaluated anew, and the gateway is sent the full state and reports
// what differed.
void StateSession::audit(Time now) {
    audit_due_ = now + audit_period_;
    const std::vector<model::ServiceKey> differing = engine_.audit();
    counters_.audit_differences += differing.size();
    for (const model::ServiceKey& key : differing) {
        say(LogLine::Level::Warning,
            "audit: service " + key.to_string() + " was evaluated incorrectly before and is now corrected");
    }
    lacks_.keys.insert(differing.begin(), differing.end());
    lacks_.everything = true;
}

void StateSession::begin_full_state(Time now) {
    in_flight_ = Flight{.version = ++last_version_,
                        .full = true,
                        .begun = now,
                        .audit = applied_.has_value() && !lacks_.beyond_keys,
                        .carries = std::exchange(lacks_, {}),
                        .services = engine_.desired().size()};
    // If the stream breaks, only another full state makes up for the loss.
    in_flight_->carries.everything = true;
    in_flight_->carries.since = in_flight_->carries.since.value_or(now);
    OutgoingState::Content content{.services = {}, .removed = {}, .environment = engine_.environment()};
    content.services.reserve(engine_.desired().size());
    for (const auto& [key, service] : engine_.desired()) {
        content.services.push_back(offered(key));
    }
    outgoing_.emplace(OutgoingState::Name{.source = source_, .version = last_version_, .base = std::nullopt},
                      std::move(content));
    ++counters_.full_states;
}

void StateSession::begin_delta(Time now) {
    in_flight_ = Flight{.version = ++last_version_,
                        .full = false,
                        .begun = now,
                        .audit = false,
                        .carries = std::exchange(lacks_, {}),
                        .services = engine_.desired().size()};
    OutgoingState::Content content;
    for (const model::ServiceKey& key : in_flight_->carries.keys) {
        if (auto service = offered(key)) {
            content.services.push_back(std::move(service));
        } else {
            content.removed.push_back(key);
        }
    }
    if (in_flight_->carries.environment) {
        content.environment = engine_.environment();
    }
    outgoing_.emplace(OutgoingState::Name{.source = source_, .version = last_version_, .base = applied_},
                      std::move(content));
    ++counters_.deltas;
}

void StateSession::arrived(const Flight& flight, Time now) {
    applied_ = flight.version;
    applied_at_ = now;
    counters_.services = flight.services;
    if (flight.full) {
        audit_due_ = now + audit_period_;
    }
}

const std::string& StateSession::gateway_name() const {
    static const std::string unknown;
    return identity_ ? identity_->gateway_name : unknown;
}

std::vector<LogLine> StateSession::take_log() {
    return std::exchange(log_, {});
}

void StateSession::describe(GatewayStatus& status, Time now) const {
    const auto age = [now](Time since) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(now - since);
    };
    status.name = gateway_name();
    status.connected = identified_;
    status.desired_version = last_version_ + (lacks_.since || held_losses_.oldest() ? 1 : 0);
    status.applied_version = applied_.value_or(0);
    std::optional<Time> oldest = coalescer_.oldest();
    for (const auto& since :
         {lacks_.since, held_losses_.oldest(), in_flight_ ? in_flight_->carries.since : std::nullopt,
          unanswered_ ? unanswered_->carries.since : std::nullopt}) {
        oldest = since ? std::min(oldest.value_or(*since), *since) : oldest;
    }
    status.lag = oldest ? age(*oldest) : std::chrono::milliseconds(0);
    status.applied_age = applied_at_ ? std::optional(age(*applied_at_)) : std::nullopt;
    status.changes_waiting = pending_.services.size() + pending_.slices.size() + pending_.nodes.size();
    status.services = counters_.services;
    status.refused = refused_.size();
    status.notices = counters_.notices;
    status.full_states = counters_.full_states;
    status.deltas = counters_.deltas;
    status.audit_differences = counters_.audit_differences;
    status.apply_latency = counters_.apply_latency;
}

}  // namespace penstock::sync
