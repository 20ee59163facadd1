// SPDX-License-Identifier: Apache-2.0
// Interface for consumers of findings and their results, for example the writer of Events. Each gateway's
// thread calls it, so implementations must be thread-safe and must never block: slow reporting must not delay
// a gateway.
//
// Objects are identified by name only. The uid and resourceVersion of an Event are read from the store when
// the Event is written, so that no Event is written about an object that is gone.
#pragma once

#include <string>

#include "control/model/desired.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::sync {

class Observer {
 public:
    virtual ~Observer() = default;
    // `gateway` is the name that the gateway reports for itself. A notice is reported when it appears and
    // when it is over, not in between.
    virtual void on_notice_appeared(const std::string& gateway, const semantics::ObjectNotice& about) = 0;
    virtual void on_notice_gone(const std::string& gateway, const semantics::ObjectNotice& about) = 0;
    // The gateway refused a service port and serves its last good version, if any. `reason` is a CamelCase
    // word of the requirements ("CapacityExceeded", "FrontendConflict", "InvalidService"); `why` names the
    // object and the rule. Called once for each new `why`.
    virtual void on_refused(const std::string& gateway, const model::ServiceKey& key,
                            const std::string& reason, const std::string& why) = 0;
    // A service port is in use on every worker for the first time: new, or accepted after a refusal. Ports
    // that the gateway already had when this process first connected are reported when they first change.
    virtual void on_programmed(const std::string& gateway, const model::ServiceKey& key) = 0;
    // The gateway serves the LoadBalancer IPs of the Service, in their newest version, on every worker
    // (PRESENCE-001), or does not any more. Also reported for a gateway that had them when this process
    // connected.
    virtual void on_served(const std::string& gateway, const kube::ObjectName& service, bool is_served) = 0;
    // The gateway is connected and has the state of this process, or has been without it for kGatewayGone.
    virtual void on_reachable(const std::string& gateway, bool is_reachable) = 0;
};

}  // namespace penstock::sync
