// What gateways find becomes Events about the objects: each gateway tells its own, under its own name (EVT-003).
#pragma once

#include <string>

#include "control/kube/event_recorder.hpp"
#include "control/sync/observer.hpp"

namespace penstock::sync {

class EventObserver final : public Observer {
 public:
    // `recorder` outlives it, and every gateway's thread.
    explicit EventObserver(kube::EventRecorder& recorder) : recorder_(recorder) {}

    void on_notice_appeared(const std::string& gateway, const semantics::ObjectNotice& about) override;
    // Nothing: an Event tells what happened, and the change that ended it is in the object for all to see.
    void on_notice_gone(const std::string& gateway, const semantics::ObjectNotice& about) override;
    void on_refused(const std::string& gateway, const model::ServiceKey& key, const std::string& reason,
                    const std::string& why) override;
    // One ServiceProgrammed for each Service and gateway, whatever ports it has.
    void on_programmed(const std::string& gateway, const model::ServiceKey& key) override;

 private:
    kube::EventRecorder& recorder_;
};

}  // namespace penstock::sync
