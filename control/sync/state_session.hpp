// The control plane's side of the state stream with one gateway, as a machine without I/O or threads: events go in, the message to send
// and lines for the log come out. It lives as long as the process, over any number of streams, and so knows what the gateway has.
//
//     stream opened -> identity -> [evaluate] -> full state, or delta, or nothing where the gateway has it already
//                         ^            |
//     objects changed ----+            v
//     identity changed ---+     applied: the base of the next delta
//
// One message is under way at a time: whatever changes meanwhile is one difference afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/semantics.hpp"
#include "control/sync/once.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::sync {

struct LogLine {
    enum class Level : uint8_t { Info, Warning };
    Level level = Level::Info;
    std::string text;
    bool operator==(const LogLine&) const = default;
};

class StateSession {
 public:
    // `source` is unique to this process: versions are counted within it (v1::StateVersion).
    StateSession(std::string source, semantics::Policy policy) : source_(std::move(source)), policy_(std::move(policy)) {}

    // Not null. Before the first call nothing is sent: what is not known yet must not be withdrawn (GEN-012).
    void on_objects(std::shared_ptr<const kube::ObjectSet> objects);

    void on_stream_opened();
    void on_stream_ended();
    // The gateway gave up the stream because of what was sent (a base it does not have): start the next one from a full state.
    void on_refused_stream();

    // An error is a gateway that does not speak this protocol; the stream is of no use then.
    [[nodiscard]] Status on_identity(const v1::Identity& identity);
    [[nodiscard]] Status on_applied(const v1::Applied& applied);

    // What to send now; nullopt where there is nothing, or an answer is waited for.
    [[nodiscard]] std::optional<v1::StateMessage> next();
    [[nodiscard]] bool awaits_answer() const noexcept { return in_flight_.has_value(); }

    // Lines since the last call.
    [[nodiscard]] std::vector<LogLine> take_log();

 private:
    struct Versioned {
        uint64_t version = 0;
        std::shared_ptr<const model::Desired> desired;
    };

    void evaluate();
    [[nodiscard]] v1::StateMessage full_state(const Versioned& to) const;
    [[nodiscard]] v1::StateMessage delta(const Versioned& to) const;
    void note_result(const v1::ServiceResult& result);
    void say(LogLine::Level level, std::string text) { log_.push_back({level, std::move(text)}); }

    std::string source_;
    semantics::Policy policy_;
    std::shared_ptr<const kube::ObjectSet> objects_;
    std::optional<model::GatewayIdentity> identity_;  // of the stream that is open
    std::shared_ptr<const model::Desired> desired_;   // null: to be evaluated
    std::optional<model::GatewayIdentity> evaluated_for_;
    uint64_t last_version_ = 0;
    std::optional<Versioned> in_flight_;
    std::optional<Versioned> unanswered_;  // was in flight when its stream ended: the gateway may have it or not
    std::optional<Versioned> applied_;     // what the gateway has from us
    Once<semantics::ObjectNotice> notices_;
    std::map<std::string, std::string> refused_;  // service port -> why
    std::vector<LogLine> log_;
};

}  // namespace penstock::sync
