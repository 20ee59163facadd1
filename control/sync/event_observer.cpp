// SPDX-License-Identifier: Apache-2.0
#include "control/sync/event_observer.hpp"

#include <utility>

namespace penstock::sync {
namespace {

using kube::Event;

std::string port_text(const model::ServiceKey& key) {
    return "port " + (key.port_name.empty() ? "" : key.port_name + "/") + to_string(key.protocol);
}

}  // namespace

void EventObserver::offer(kube::Event event) {
    if (recorder_ != nullptr) {
        recorder_->offer(std::move(event));
    }
}

void EventObserver::on_notice_appeared(const std::string& gateway, const semantics::ObjectNotice& about) {
    const bool is_warning = about.notice.level == model::Notice::Level::Warning;
    offer({.kind = about.kind,
           .object = about.object,
           .type = is_warning ? Event::Type::Warning : Event::Type::Normal,
           .reason = about.notice.reason,
           .message = about.notice.message,
           .reporter = gateway});
}

void EventObserver::on_notice_gone(const std::string&, const semantics::ObjectNotice&) {}

void EventObserver::on_refused(const std::string& gateway, const model::ServiceKey& key,
                               const std::string& reason, const std::string& why) {
    offer({.kind = "Service",
           .object = {key.namespace_name, key.name},
           .type = Event::Type::Warning,
           .reason = reason,
           .message = port_text(key) + ": " + why,
           .reporter = gateway});
}

void EventObserver::on_programmed(const std::string& gateway, const model::ServiceKey& key) {
    offer({.kind = "Service",
           .object = {key.namespace_name, key.name},
           .type = Event::Type::Normal,
           .reason = "ServiceProgrammed",
           .message = "gateway " + gateway + " forwards its traffic",
           .reporter = gateway,
           .once = true});
}

void EventObserver::on_served(const std::string& gateway, const kube::ObjectName& service, bool is_served) {
    if (board_ != nullptr) {
        board_->report(gateway, service, is_served);
    }
}

void EventObserver::on_reachable(const std::string& gateway, bool is_reachable) {
    if (board_ != nullptr) {
        board_->set_reachable(gateway, is_reachable);
    }
}

}  // namespace penstock::sync
