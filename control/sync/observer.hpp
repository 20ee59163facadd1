// Who wants to know what was found and what became of it: the writer of Events, for one. Each gateway's thread calls it, so it is
// thread-safe, and it never blocks: whatever is slow about telling the world must not delay a gateway.
//
// Objects are named, no more: uid and resourceVersion, which an Event carries too, are the store's to say when the Event is written, so
// that nobody tells of an object that is gone.
#pragma once

#include <string>

#include "control/model/desired.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::sync {

class Observer {
 public:
    virtual ~Observer() = default;
    // `gateway` is the name by which the gateway calls itself. A notice is told when it appears and when it is over, not in between.
    virtual void on_notice_appeared(const std::string& gateway, const semantics::ObjectNotice& about) = 0;
    virtual void on_notice_gone(const std::string& gateway, const semantics::ObjectNotice& about) = 0;
    // The gateway did not take a service port, and serves its last good version, if any. `reason` is a CamelCase word of the requirement
    // sheet ("CapacityExceeded", "FrontendConflict", "InvalidService"), `why` names the thing and the rule. Once for each new `why`.
    virtual void on_refused(const std::string& gateway, const model::ServiceKey& key,
                            const std::string& reason, const std::string& why) = 0;
    // A service port is in use on every worker for the first time: new, or taken after it was refused. Ports that the gateway already had
    // when this process first met it are told when they first change.
    virtual void on_programmed(const std::string& gateway, const model::ServiceKey& key) = 0;
};

}  // namespace penstock::sync
