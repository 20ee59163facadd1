#include "control/sync/state_session.hpp"

#include <algorithm>
#include <utility>

#include "control/model/observed.hpp"
#include "control/model/refusal.hpp"
#include "control/rpc/convert.hpp"
#include "control/semantics/load_balancer.hpp"

namespace penstock::sync {
namespace {

std::string notice_text(const semantics::ObjectNotice& about) {
    const std::string name = about.object.namespace_name.empty()
                                 ? about.object.name
                                 : about.object.namespace_name + "/" + about.object.name;
    return about.kind + " " + name + ": " + about.notice.reason + ": " + about.notice.message;
}

LogLine::Level notice_level(const model::Notice& notice) {
    return notice.level == model::Notice::Level::Warning ? LogLine::Level::Warning : LogLine::Level::Info;
}

// Bound for a gateway's text about one service port, which is stored, logged and written into Events.
constexpr size_t kWhyBytesMax = 1'024;
constexpr size_t kReasonBytesMax = 64;

// True for a CamelCase word. Other text must not be quoted in an Event.
bool is_reason(const std::string& word) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !word.empty() && word.size() <= kReasonBytesMax && word.front() <= 'Z' &&
           std::ranges::all_of(word, is_letter);
}

// A gateway that sends no reason is older than that field.
std::string reason_of(const v1::ServiceResult& refused) {
    return is_reason(refused.reason()) ? refused.reason() : std::string(model::kInvalidService);
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
    pending_.merge(std::move(changes));
    coalescer_.on_change(now);
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
    auto identity = rpc::from_proto(message);
    if (!identity) {
        return in_context("identity", std::move(identity).error());
    }
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
            std::string("connected: ") + model::to_string(identity->mode) + " mode" +
                (identity->node_name.empty() ? "" : ", node " + identity->node_name) + ", penstockd " +
                message.software_version() +
                (applied_ ? ", has version " + std::to_string(*applied_) : ", a full state is needed"));
    }
    if (identity_ != *identity) {
        identity_ = std::move(*identity);
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
        tell_appeared(about);
    }
    for (const auto& about : step.gone) {
        tell_gone(about);
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

void StateSession::tell_appeared(const semantics::ObjectNotice& about) {
    say(notice_level(about.notice), notice_text(about));
    if (Observer* observer = observer_of(about)) {
        observer->on_notice_appeared(gateway_name(), about);
    }
}

void StateSession::tell_gone(const semantics::ObjectNotice& about) {
    say(LogLine::Level::Info, "no longer: " + notice_text(about));
    if (Observer* observer = observer_of(about)) {
        observer->on_notice_gone(gateway_name(), about);
    }
}

// Observed notices, like refusals, are accepted only for Services that the gateway was sent, and their text
// is bounded.
void StateSession::on_observed(const v1::Observed& observed) {
    if (!objects_known_) {
        unheard_ = observed;
        return;
    }
    std::set<semantics::ObjectNotice> now;
    for (const v1::ObservedNotice& each : observed.notices()) {
        auto notice = rpc::from_proto(each);
        if (now.size() >= model::kObservedMax) {
            break;
        }
        if (!notice || !is_reason(notice->notice.reason) || !engine_.desired().contains(notice->key)) {
            continue;
        }
        notice->notice.message.resize(std::min(notice->notice.message.size(), kWhyBytesMax));
        now.insert({"Service", {notice->key.namespace_name, notice->key.name}, std::move(notice->notice)});
    }
    const auto before = std::exchange(observed_, std::move(now));
    for (const auto& about : observed_) {
        if (!before.contains(about)) {
            tell_appeared(about);
        }
    }
    for (const auto& about : before) {
        if (!observed_.contains(about)) {
            tell_gone(about);
        }
    }
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
            begin_delta();
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

void StateSession::begin_delta() {
    in_flight_ = Flight{.version = ++last_version_,
                        .full = false,
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

Status StateSession::on_applied(const v1::Applied& answer, Time now) {
    if (!awaits_answer() || answer.version().source() != source_ ||
        answer.version().version() != in_flight_->version) {
        return fail(Errc::Internal,
                    "the gateway reports version " + std::to_string(answer.version().version()) + " of \"" +
                        answer.version().source() + "\" as applied, which is not the version in flight");
    }
    const Flight flight = *std::exchange(in_flight_, std::nullopt);
    arrived(flight, now);
    // The time for which the gateway was disconnected does not count as latency of the path to it.
    counters_.apply_latency.observe(now - std::max(*flight.carries.since, identified_at_));
    say(flight.full ? LogLine::Level::Info : LogLine::Level::Debug,
        "applied version " + std::to_string(flight.version) + " in " + std::to_string(answer.apply_us()) +
            " us: " + std::to_string(answer.services_size()) + " service ports changed, " +
            std::to_string(flight.services) + " in all");
    if (flight.audit) {
        count_differences(answer, flight);
    }
    note_results(answer, flight);
    return {};
}

void StateSession::arrived(const Flight& flight, Time now) {
    applied_ = flight.version;
    applied_at_ = now;
    counters_.services = flight.services;
    if (flight.full) {
        audit_due_ = now + audit_period_;
    }
}

// A full state repeats the state that the gateway should have. Service ports that it changed nevertheless
// were different there. Ports new in this state, and ports that the gateway refuses anyway, are not counted.
void StateSession::count_differences(const v1::Applied& answer, const Flight& flight) {
    uint64_t differences = 0;
    for (const v1::ServiceResult& result : answer.services()) {
        const auto key = rpc::from_proto(result.key());
        if (!key || result.outcome() == v1::ServiceResult::OUTCOME_REFUSED ||
            flight.carries.keys.contains(*key)) {
            continue;
        }
        ++differences;
        say(LogLine::Level::Warning,
            "audit: service " + key->to_string() + " was different at the gateway and has been repaired");
    }
    counters_.audit_differences += differences;
    say(LogLine::Level::Info, "audit: " + std::to_string(flight.services) + " service ports compared, " +
                                  std::to_string(differences) + " were different at the gateway");
}

void StateSession::note_results(const v1::Applied& answer, const Flight& flight) {
    std::set<model::ServiceKey> refused_now;
    for (const v1::ServiceResult& result : answer.services()) {
        auto key = rpc::from_proto(result.key());
        if (!key) {
            say(LogLine::Level::Warning, "refused service " + rpc::text_of(result.key()) + ": " +
                                             result.why().substr(0, kWhyBytesMax));
            continue;
        }
        // Results about unknown Services are ignored: a gateway could otherwise fill this process's memory
        // with them, and write false Events.
        if (!engine_.desired().contains(*key) && !programmed_.contains(*key) &&
            !flight.carries.keys.contains(*key)) {
            continue;
        }
        if (result.outcome() == v1::ServiceResult::OUTCOME_REFUSED) {
            note_refusal(*key, result);
            refused_now.insert(std::move(*key));
        } else if (result.outcome() == v1::ServiceResult::OUTCOME_REMOVED) {
            programmed_.erase(*key);
        } else if (Observer* observer = observer_of(kube::ObjectName{key->namespace_name, key->name});
                   observer != nullptr && programmed_.insert(*key).second) {
            observer->on_programmed(gateway_name(), *key);
        }
    }
    // The answer to a full state lists all refusals, the answer to a delta those of the ports in the delta.
    std::erase_if(refused_, [&](const auto& refusal) {
        const model::ServiceKey& key = refusal.first;
        if (refused_now.contains(key) || !(flight.full || flight.carries.keys.contains(key))) {
            return false;
        }
        if (engine_.desired().contains(key)) {
            say(LogLine::Level::Info, "service " + key.to_string() + " has been applied");
        }
        return true;
    });
}

// A refusal is reported once per reason: a gateway repeats it with every message that contains the service
// port.
void StateSession::note_refusal(const model::ServiceKey& key, const v1::ServiceResult& result) {
    const std::string why = result.why().substr(0, kWhyBytesMax);
    std::string& known = refused_[key];
    if (known == why) {
        return;
    }
    known = why;
    programmed_.erase(key);
    say(LogLine::Level::Warning, "refused service " + key.to_string() + ": " + why);
    if (Observer* observer = observer_of(kube::ObjectName{key.namespace_name, key.name})) {
        observer->on_refused(gateway_name(), key, reason_of(result), why);
    }
}

Observer* StateSession::observer_of(const kube::ObjectName& service) const {
    const auto& services = engine_.objects().services;
    const auto known = services.find(service);
    return known != services.end() && semantics::is_foreign(*known->second, engine_.policy()) ? nullptr
                                                                                              : observer_;
}

Observer* StateSession::observer_of(const semantics::ObjectNotice& about) const {
    return about.kind == "Service" ? observer_of(about.object) : observer_;
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
