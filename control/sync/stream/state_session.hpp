// SPDX-License-Identifier: Apache-2.0
// The control plane's side of the state stream with one gateway, as a state machine without I/O, clock or
// threads. Events go in; the message to send and log lines come out. A session lives as long as the process,
// over any number of streams, and therefore tracks the state that the gateway has.
//
//   changes --> [coalescer] -> engine -> [held losses] -> dirty keys -> delta --.
//   identity ----------------> engine -> [held losses] -> dirty keys -> delta --+--> parts -> applied
//   gateway's state unknown, or audit ----------------------------> full state -'
//
// Only one version is in transmission at a time. The applied version is the base of the next one.
//
// The cost of a change does not depend on the number of objects: only the keys of service ports that the
// gateway lacks are kept. All changes during the transmission of a version are merged into one delta
// afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/engine.hpp"
#include "control/sync/defaults.hpp"
#include "control/sync/observer.hpp"
#include "control/sync/status.hpp"
#include "control/sync/stream/coalescer.hpp"
#include "control/sync/stream/held_losses.hpp"
#include "control/sync/stream/outgoing_state.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::sync {

// Limit of dirty keys kept for a disconnected gateway, in addition to the number of service ports. Above it,
// sending the full state is cheaper than keeping the keys.
inline constexpr size_t kDirtyFloor = 10'000;

struct LogLine {
    enum class Level : uint8_t { Debug, Info, Warning };
    Level level = Level::Info;
    std::string text;
    bool operator==(const LogLine&) const = default;
};

class StateSession {
 public:
    using Time = std::chrono::steady_clock::time_point;

    struct Settings {
        std::string source;  // unique to this process; versions are counted within it (v1::StateVersion)
        semantics::Policy policy;
        std::chrono::milliseconds coalesce = kCoalesceDefault;
        std::chrono::seconds audit_period = kAuditPeriodDefault;
    };
    // `observer` may be null; otherwise it must outlive this object.
    explicit StateSession(Settings settings, Observer* observer = nullptr);

    // Nothing is sent before the first call: objects that are not known yet must not be withdrawn (GEN-012).
    // The first call brings all objects. It may be empty, which means that there are none.
    void on_changes(kube::Changes changes, Time now);
    // The external IP policy file has changed (XIP-006).
    void on_external_ip_rules(std::vector<semantics::ExternalIpRule> rules, Time now);

    void on_stream_opened();
    void on_stream_ended();
    // The gateway rejected the stream because of the data sent (a base version that it does not have). The
    // next stream begins with a full state.
    void on_refused_stream();

    // An error means that the gateway does not speak this protocol. The stream is then useless.
    [[nodiscard]] Status on_identity(const v1::Identity& identity, Time now);
    [[nodiscard]] Status on_applied(const v1::Applied& applied, Time now);
    // The complete list of notices observed by the gateway. Notices that appeared or ended since the last
    // call are reported.
    void on_observed(const v1::Observed& observed);

    // Processes the changes that are due. For use while no stream is open; next() calls it by itself.
    void work_in_changes(Time now);
    // The message to send now: a state, or the next part of one. nullopt if there is nothing to send, or an
    // answer is pending.
    [[nodiscard]] std::optional<v1::StateMessage> next(Time now);
    // The time at which next() must be called even without an event; nullopt: never.
    [[nodiscard]] std::optional<Time> due() const;
    // True if all parts are sent and the answer is pending.
    [[nodiscard]] bool awaits_answer() const noexcept { return in_flight_ && !outgoing_; }

    // Log lines since the last call.
    [[nodiscard]] std::vector<LogLine> take_log();
    // Fills in the fields that the session maintains.
    void describe(GatewayStatus& status, Time now) const;

 private:
    // The changes not yet sent to the gateway.
    struct Lacks {
        std::set<model::ServiceKey> keys;
        bool environment = false;
        bool everything = false;    // a full state is due
        bool beyond_keys = false;   // `keys` is incomplete, because a full state follows anyway
        std::optional<Time> since;  // arrival of the oldest change in it; nullopt: nothing is lacking
        void add(const Lacks& other);
    };
    // A version in transmission.
    struct Flight {
        uint64_t version = 0;
        bool full = false;
        Time begun{};           // after the wait for related changes, and for the answer to a former version
        bool audit = false;     // full state, sent to a gateway that should have it already
        Lacks carries;          // the changes in it that are new for the gateway
        uint64_t services = 0;  // service ports in the state
    };

    // Evaluates the pending changes.
    void take_in_changes(Time now);
    // Takes over the result of an evaluation. `heard` is the arrival time of the oldest change that caused
    // it.
    void absorb(const semantics::Step& step, Time heard, Time now);
    // Marks these service ports as lacking at the gateway, and the environment if `with_environment`.
    void note_lack(const std::vector<model::ServiceKey>& keys, bool with_environment, Time heard);
    // The service port that the gateway is to have at this moment, from the evaluated state; null if there is
    // none under this key.
    [[nodiscard]] std::shared_ptr<const model::Service> offered(const model::ServiceKey& key) const;
    void report_appeared(const semantics::ObjectNotice& about);
    void report_gone(const semantics::ObjectNotice& about);
    void audit(Time now);
    void begin_full_state(Time now);
    void begin_delta(Time now);
    // The gateway has applied the version.
    void arrived(const Flight& flight, Time now);
    // The version did not arrive: its changes are marked as lacking again.
    void forget_unanswered();
    void note_results(const v1::Applied& answer, const Flight& flight);
    void note_refusal(const model::ServiceKey& key, const v1::ServiceResult& result);
    // Reports Services whose LoadBalancer IPs the gateway serves since this version, or serves no more.
    void report_served(const Flight& flight);
    // nullopt: a newer version of the Service is on its way.
    [[nodiscard]] std::optional<bool> serves(const kube::ObjectName& service) const;
    void count_differences(const v1::Applied& answer, const Flight& flight);
    // The observer for findings about a Service; null if the Service belongs to another implementation
    // (LB-002).
    [[nodiscard]] Observer* observer_of(const kube::ObjectName& service) const;
    [[nodiscard]] Observer* observer_of(const semantics::ObjectNotice& about) const;
    [[nodiscard]] const std::string& gateway_name() const;
    void say(LogLine::Level level, std::string text) { log_.push_back({level, std::move(text)}); }

    const std::string source_;
    const std::chrono::seconds audit_period_;
    Observer* const observer_;
    semantics::Engine engine_;

    kube::Changes pending_;
    Coalescer coalescer_;
    HeldLosses held_losses_;
    bool objects_known_ = false;

    std::optional<model::GatewayIdentity> identity_;  // the newest one
    bool identified_ = false;                         // on the open stream
    Time identified_at_{};

    uint64_t last_version_ = 0;
    std::optional<uint64_t> applied_;        // version that the gateway has from us; base of `lacks_`
    Lacks lacks_;                            // changes since `applied_`, or since `in_flight_` if set
    std::optional<Flight> in_flight_;        // not answered yet
    std::optional<OutgoingState> outgoing_;  // the parts of in_flight_ not sent yet
    std::optional<Flight> unanswered_;  // was in flight when its stream ended; the gateway may have it or not

    std::optional<Time> audit_due_;
    std::map<model::ServiceKey, std::string> refused_;  // with the reason
    std::set<model::ServiceKey> programmed_;            // reported to the observer
    std::set<kube::ObjectName> served_;                 // reported to the observer
    std::set<semantics::ObjectNotice> observed_;        // notices last reported by the gateway
    std::optional<v1::Observed> unheard_;  // received before its objects were known; processed later
    GatewayStatus counters_;               // only its counters, which never decrease
    std::optional<Time> applied_at_;
    std::vector<LogLine> log_;
};

}  // namespace penstock::sync
