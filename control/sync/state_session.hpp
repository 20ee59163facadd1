// The control plane's side of the state stream with one gateway, as a machine without I/O, clock or threads: events go in, the message to
// send and lines for the log come out. It lives as long as the process, over any number of streams, and so knows what the gateway has.
//
//     changes -> [coalescer] -> engine -> [held losses] -> dirty keys -> delta ---.
//     identity ---------------> engine -> [held losses] -> dirty keys -> delta ---+--> parts, one version at a time --> applied: the base
//     what the gateway has is not known, or audit ----------------> full state ---'                                    of the next one
//
// Nothing here walks the world for one change: of what the gateway lacks, only the keys are kept. Whatever changes while a version is under
// way becomes one difference afterwards.
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
#include "control/sync/coalescer.hpp"
#include "control/sync/defaults.hpp"
#include "control/sync/held_losses.hpp"
#include "control/sync/observer.hpp"
#include "control/sync/outgoing_state.hpp"
#include "control/sync/status.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::sync {

// Keys that a gateway lacks while it is away, beyond as many as there are: from then on it is cheaper to send everything than to remember.
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
        std::string source;  // unique to this process: versions are counted within it (v1::StateVersion)
        semantics::Policy policy;
        std::chrono::milliseconds coalesce = kCoalesceDefault;
        std::chrono::seconds audit_period = kAuditPeriodDefault;
    };
    // `observer` may be null; else it outlives this.
    explicit StateSession(Settings settings, Observer* observer = nullptr);

    // Before the first call nothing is sent: what is not known yet must not be withdrawn (GEN-012). The first one brings all objects; no
    // changes at all are a statement too.
    void on_changes(kube::Changes changes, Time now);
    // The administrator's file says something new (XIP-006).
    void on_external_ip_rules(std::vector<semantics::ExternalIpRule> rules, Time now);

    void on_stream_opened();
    void on_stream_ended();
    // The gateway gave up the stream because of what was sent (a base it does not have): start the next one from a full state.
    void on_refused_stream();

    // An error is a gateway that does not speak this protocol; the stream is of no use then.
    [[nodiscard]] Status on_identity(const v1::Identity& identity, Time now);
    [[nodiscard]] Status on_applied(const v1::Applied& applied, Time now);
    // What the gateway has to say by itself: all of it. What came or went since the last time is told.
    void on_observed(const v1::Observed& observed);

    // Works in the changes that are due. For while there is nobody to send to: next() does it by itself.
    void work_in_changes(Time now);
    // What to send now: a state, or the next part of one. nullopt where there is nothing, or an answer is waited for.
    [[nodiscard]] std::optional<v1::StateMessage> next(Time now);
    // When next() has something to do even if nothing happens; nullopt: never.
    [[nodiscard]] std::optional<Time> due() const;
    // All parts are sent.
    [[nodiscard]] bool awaits_answer() const noexcept { return in_flight_ && !outgoing_; }

    // Lines since the last call.
    [[nodiscard]] std::vector<LogLine> take_log();
    // Fills in what the session knows.
    void describe(GatewayStatus& status, Time now) const;

 private:
    // What the gateway was not told yet.
    struct Lacks {
        std::set<model::ServiceKey> keys;
        bool environment = false;
        bool everything = false;  // a full state is due
        bool beyond_keys =
            false;  // `keys` does not have all that is new, because a full state brings it anyway
        std::optional<Time> since;  // the oldest change in it was heard; nullopt: it lacks nothing
        void add(const Lacks& other);
    };
    // A version on its way.
    struct Flight {
        uint64_t version = 0;
        bool full = false;
        bool audit = false;     // full, sent to a gateway that should have it already
        Lacks carries;          // what is new in it for the gateway
        uint64_t services = 0;  // service ports in the state
    };

    // Works in what was heard so far.
    void take_in_changes(Time now);
    // What became different by changes of which the oldest was heard then.
    void absorb(const semantics::Step& step, Time heard, Time now);
    // The gateway lacks these service ports, as they are now, and the environment where `with_environment`.
    void note_lack(const std::vector<model::ServiceKey>& keys, bool with_environment, Time heard);
    // Of everything that is worked out, what the gateway shall have at this moment; null: nothing under this key.
    [[nodiscard]] std::shared_ptr<const model::Service> offered(const model::ServiceKey& key) const;
    void tell_appeared(const semantics::ObjectNotice& about);
    void tell_gone(const semantics::ObjectNotice& about);
    void audit(Time now);
    void begin_full_state(Time now);
    void begin_delta();
    // The gateway has it.
    void arrived(const Flight& flight, Time now);
    // It did not arrive: the gateway still lacks what it carried.
    void forget_unanswered();
    void note_results(const v1::Applied& answer, const Flight& flight);
    void note_refusal(const model::ServiceKey& key, const v1::ServiceResult& result);
    void count_differences(const v1::Applied& answer, const Flight& flight);
    // Who hears what is found about a Service; null: nothing does, because the Service is another implementation's (LB-002).
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
    bool identified_ = false;                         // on the stream that is open
    Time identified_at_{};

    uint64_t last_version_ = 0;
    std::optional<uint64_t> applied_;        // what the gateway has from us; `lacks_` is relative to it
    Lacks lacks_;                            // and to `in_flight_`, where there is one
    std::optional<Flight> in_flight_;        // not answered yet
    std::optional<OutgoingState> outgoing_;  // of in_flight_: the parts that are not sent yet
    std::optional<Flight> unanswered_;  // was in flight when its stream ended: the gateway may have it or not

    std::optional<Time> audit_due_;
    std::map<model::ServiceKey, std::string> refused_;  // and why
    std::set<model::ServiceKey> programmed_;            // told to the observer
    std::set<semantics::ObjectNotice> observed_;        // by the gateway, as it said last
    std::optional<v1::Observed> unheard_;               // said before the objects were known that it is about
    GatewayStatus counters_;                            // those of its fields that only grow
    std::optional<Time> applied_at_;
    std::vector<LogLine> log_;
};

}  // namespace penstock::sync
