// SPDX-License-Identifier: Apache-2.0
// What a gateway reports on its stream: the results of a version, and the notices that it observed. Both are
// logged and passed to the observer. A gateway is not trusted to name only Services that it was sent.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "control/model/observed.hpp"
#include "control/model/refusal.hpp"
#include "control/rpc/convert.hpp"
#include "control/semantics/load_balancer.hpp"
#include "control/sync/stream/state_session.hpp"

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
    const Time since = std::max(*flight.carries.since, identified_at_);
    counters_.apply_latency.observe(now - since);
    const auto us = [](Time::duration time) {
        return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
    };
    say(flight.full ? LogLine::Level::Info : LogLine::Level::Debug,
        "applied version " + std::to_string(flight.version) + " in " + std::to_string(answer.apply_us()) +
            " us: " + std::to_string(answer.services_size()) + " service ports changed, " +
            std::to_string(flight.services) + " in all; " + us(now - since) +
            " us after the change, of which " + us(std::max(flight.begun, since) - since) +
            " us before it was sent");
    if (flight.audit) {
        count_differences(answer, flight);
    }
    note_results(answer, flight);
    report_served(flight);
    return {};
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

void StateSession::report_served(const Flight& flight) {
    if (observer_ == nullptr) {
        return;
    }
    std::set<kube::ObjectName> affected;
    for (const model::ServiceKey& key : flight.carries.keys) {
        affected.insert({key.namespace_name, key.name});
    }
    if (flight.full) {
        affected.insert(served_.begin(), served_.end());
        for (const auto& [key, service] : engine_.desired()) {
            affected.insert({key.namespace_name, key.name});
        }
    }
    for (const kube::ObjectName& name : affected) {
        const std::optional<bool> is_served = serves(name);
        if (is_served && *is_served != served_.contains(name)) {
            *is_served ? static_cast<void>(served_.insert(name)) : static_cast<void>(served_.erase(name));
            observer_->on_served(gateway_name(), name, *is_served);
        }
    }
}

std::optional<bool> StateSession::serves(const kube::ObjectName& service) const {
    bool has_address = false;
    const auto& desired = engine_.desired();
    for (auto each = desired.lower_bound({service.namespace_name, service.name, "", Protocol{}});
         each != desired.end() && each->first.namespace_name == service.namespace_name &&
         each->first.name == service.name;
         ++each) {
        if (lacks_.everything || lacks_.keys.contains(each->first)) {
            return std::nullopt;
        }
        const auto is_lb = [](const model::Frontend& frontend) {
            return frontend.cls == lb::FrontendClass::LoadBalancerIp;
        };
        if (std::ranges::any_of(each->second->frontends, is_lb)) {
            if (refused_.contains(each->first)) {
                return false;
            }
            has_address = true;
        }
    }
    return has_address;
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
            report_appeared(about);
        }
    }
    for (const auto& about : before) {
        if (!observed_.contains(about)) {
            report_gone(about);
        }
    }
}

void StateSession::report_appeared(const semantics::ObjectNotice& about) {
    say(notice_level(about.notice), notice_text(about));
    if (Observer* observer = observer_of(about)) {
        observer->on_notice_appeared(gateway_name(), about);
    }
}

void StateSession::report_gone(const semantics::ObjectNotice& about) {
    say(LogLine::Level::Info, "no longer: " + notice_text(about));
    if (Observer* observer = observer_of(about)) {
        observer->on_notice_gone(gateway_name(), about);
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

}  // namespace penstock::sync
