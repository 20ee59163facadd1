// SPDX-License-Identifier: Apache-2.0
// Writes the findings of gateways as Events about the objects. Each gateway's Events are written under its
// own name (EVT-003).
#pragma once

#include <string>

#include "control/kube/events/event_recorder.hpp"
#include "control/sync/addresses/programmed_board.hpp"
#include "control/sync/observer.hpp"

namespace penstock::sync {

class EventObserver final : public Observer {
 public:
    // Either may be null: no Events, or no conditions, are written. Otherwise they outlive this object and
    // every gateway's thread.
    explicit EventObserver(kube::EventRecorder* recorder, ProgrammedBoard* board = nullptr)
        : recorder_(recorder), board_(board) {}

    void on_notice_appeared(const std::string& gateway, const semantics::ObjectNotice& about) override;
    // No Event: Events report what happened, and the change that ended the notice is visible in the object
    // itself.
    void on_notice_gone(const std::string& gateway, const semantics::ObjectNotice& about) override;
    void on_refused(const std::string& gateway, const model::ServiceKey& key, const std::string& reason,
                    const std::string& why) override;
    // One ServiceProgrammed per Service and gateway, regardless of the number of ports.
    void on_programmed(const std::string& gateway, const model::ServiceKey& key) override;
    // To the board, if there is one; no Event.
    void on_served(const std::string& gateway, const kube::ObjectName& service, bool is_served) override;
    // Likewise.
    void on_reachable(const std::string& gateway, bool is_reachable) override;

 private:
    void offer(kube::Event event);

    kube::EventRecorder* recorder_;
    ProgrammedBoard* board_;
};

}  // namespace penstock::sync
