#include "control/sync/state_session.hpp"

#include <iterator>
#include <set>
#include <utility>

#include "control/rpc/convert.hpp"
#include "control/sync/diff.hpp"

namespace penstock::sync {
namespace {

std::string text_of(const semantics::ObjectNotice& about) {
    const std::string name =
        about.object.namespace_name.empty() ? about.object.name : about.object.namespace_name + "/" + about.object.name;
    return about.kind + " " + name + ": " + about.notice.reason + ": " + about.notice.message;
}

LogLine::Level level_of(const model::Notice& notice) {
    return notice.level == model::Notice::Level::Warning ? LogLine::Level::Warning : LogLine::Level::Info;
}

}  // namespace

void StateSession::on_objects(std::shared_ptr<const kube::ObjectSet> objects) {
    objects_ = std::move(objects);
    desired_.reset();
}

void StateSession::on_stream_opened() {
    identity_.reset();
}

void StateSession::on_stream_ended() {
    identity_.reset();
    if (in_flight_) {
        unanswered_ = std::exchange(in_flight_, std::nullopt);
    }
}

void StateSession::on_refused_stream() {
    applied_.reset();
    unanswered_.reset();
}

Status StateSession::on_identity(const v1::Identity& message) {
    auto identity = rpc::from_proto(message);
    if (!identity) {
        return in_context("identity", std::move(identity).error());
    }
    if (!identity_) {
        // Only the first identity of a stream tells what the gateway has; a later one may have been sent before our last message arrived.
        const auto is_what_it_has = [&](const std::optional<Versioned>& ours) {
            return ours && message.applied_source() == source_ && message.applied_version() == ours->version;
        };
        if (is_what_it_has(unanswered_)) {
            applied_ = unanswered_;
        } else if (!is_what_it_has(applied_)) {
            applied_.reset();
        }
        unanswered_.reset();
        say(LogLine::Level::Info, std::string("connected: ") + model::to_string(identity->mode) + " mode" +
                                      (identity->node_name.empty() ? "" : ", node " + identity->node_name) + ", penstockd " +
                                      message.software_version() +
                                      (applied_ ? ", has version " + std::to_string(applied_->version) : ", needs the full state"));
    }
    identity_ = std::move(*identity);
    if (evaluated_for_ != identity_) {
        desired_.reset();
    }
    return {};
}

void StateSession::evaluate() {
    semantics::Outcome outcome = semantics::evaluate(*objects_, *identity_, policy_);
    const auto news = notices_.update({std::make_move_iterator(outcome.notices.begin()), std::make_move_iterator(outcome.notices.end())});
    for (const auto& about : news.appeared) {
        say(level_of(about.notice), text_of(about));
    }
    for (const auto& about : news.gone) {
        say(LogLine::Level::Info, "no longer: " + text_of(about));
    }
    desired_ = std::make_shared<const model::Desired>(std::move(outcome.desired));
    evaluated_for_ = identity_;
}

std::optional<v1::StateMessage> StateSession::next() {
    if (!identity_ || !objects_ || in_flight_) {
        return std::nullopt;
    }
    if (!desired_) {
        evaluate();
    }
    if (applied_ && (applied_->desired == desired_ || *applied_->desired == *desired_)) {
        return std::nullopt;
    }
    in_flight_ = Versioned{++last_version_, desired_};
    return applied_ ? delta(*in_flight_) : full_state(*in_flight_);
}

v1::StateMessage StateSession::full_state(const Versioned& to) const {
    v1::StateMessage message;
    v1::FullState& full = *message.mutable_full();
    full.mutable_version()->set_source(source_);
    full.mutable_version()->set_version(to.version);
    for (const auto& [key, service] : to.desired->services) {
        *full.add_services() = rpc::to_proto(service);
    }
    *full.mutable_node_port_addresses() = rpc::to_proto(to.desired->node_port_addresses);
    return message;
}

v1::StateMessage StateSession::delta(const Versioned& to) const {
    const Changes changes = diff(*applied_->desired, *to.desired);
    v1::StateMessage message;
    v1::StateDelta& delta = *message.mutable_delta();
    delta.mutable_base()->set_source(source_);
    delta.mutable_base()->set_version(applied_->version);
    delta.mutable_version()->set_source(source_);
    delta.mutable_version()->set_version(to.version);
    for (const model::Service& service : changes.upsert) {
        *delta.add_upsert() = rpc::to_proto(service);
    }
    for (const model::ServiceKey& key : changes.remove) {
        *delta.add_remove() = rpc::to_proto(key);
    }
    if (changes.node_port_addresses) {
        *delta.mutable_node_port_addresses() = rpc::to_proto(*changes.node_port_addresses);
    }
    return message;
}

Status StateSession::on_applied(const v1::Applied& answer) {
    if (!in_flight_ || answer.version().source() != source_ || answer.version().version() != in_flight_->version) {
        return fail(Errc::Internal, "the gateway says that it applied version " + std::to_string(answer.version().version()) + " of \"" +
                                        answer.version().source() + "\", which was not sent to it now");
    }
    applied_ = std::exchange(in_flight_, std::nullopt);
    say(LogLine::Level::Info, "applied version " + std::to_string(applied_->version) + " in " + std::to_string(answer.apply_us()) +
                                  " us: " + std::to_string(answer.services_size()) + " service ports changed, " +
                                  std::to_string(applied_->desired->services.size()) + " in all");
    for (const v1::ServiceResult& result : answer.services()) {
        note_result(result);
    }
    return {};
}

// A refusal is said once for each reason: a gateway repeats it with every message that touches the service port.
void StateSession::note_result(const v1::ServiceResult& result) {
    const std::string name = rpc::text_of(result.key());
    if (result.outcome() == v1::ServiceResult::OUTCOME_REFUSED) {
        const auto [known, added] = refused_.try_emplace(name, result.why());
        if (added || std::exchange(known->second, result.why()) != result.why()) {
            say(LogLine::Level::Warning, "refused service " + name + ": " + result.why());
        }
    } else if (refused_.erase(name) > 0 && result.outcome() == v1::ServiceResult::OUTCOME_APPLIED) {
        say(LogLine::Level::Info, "service " + name + " is applied now");
    }
}

std::vector<LogLine> StateSession::take_log() {
    return std::exchange(log_, {});
}

}  // namespace penstock::sync
