// SPDX-License-Identifier: Apache-2.0
// Exchanges the state of gateways among the penstock-sync of a cluster, so that the leader's condition
// Programmed covers the gateways of all of them (PRESENCE-001). A machine without I/O, clock and thread;
// source thread only.
//
//   each process:  own gateways on the board -> report -> annotation of the Lease NAME-gateways
//   the leader:    annotations of others     -> board
//
// The Lease is a second one, because annotations of the Lease of the election would change its version, which
// each renewal of the leader depends on. Each process patches the annotations of its own gateways only,
// without a version, so that writers never conflict. It removes an annotation only if the text is its own:
// another process may supply the gateway since.
//
// A report is written when it has changed, every kReportPeriod at most, and every kReportBeat otherwise. A
// gateway whose report does not change for kReportAgeMax is not counted any more: its process is gone. The
// gateway may still forward; nothing here touches forwarding (LEASE-004).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/lease/lease.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/status/one_response.hpp"
#include "control/kube/transport.hpp"
#include "control/sync/addresses/gateway_report.hpp"
#include "control/sync/addresses/programmed_board.hpp"

namespace penstock::sync {

inline constexpr std::chrono::seconds kReportPeriod{2};
inline constexpr std::chrono::seconds kReportBeat{20};
inline constexpr std::chrono::seconds kReportAgeMax{60};
// A new leader waits so long for the reports of others before it writes any condition.
inline constexpr std::chrono::seconds kReportsAwaited{10};
inline constexpr std::chrono::seconds kReportTimeout{5};
// Wait after 403 and other refusals.
inline constexpr std::chrono::seconds kReportRefusedPause{60};

class GatewayReports {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using Read = std::function<std::optional<kube::ServiceVersion>(const kube::ObjectName&)>;

    struct Settings {
        kube::ObjectName lease;  // of the election
        std::string identity;    // unique to this process start
    };

    // `transport`, `limiter` and `board` outlive this. `read`: newest version of a Service in the store.
    GatewayReports(Settings settings, kube::Transport& transport, kube::WriteLimiter& limiter,
                   ProgrammedBoard& board, Read read);
    ~GatewayReports();
    GatewayReports(const GatewayReports&) = delete;
    GatewayReports& operator=(const GatewayReports&) = delete;

    // Changes as the source reports them, in order.
    void note(const kube::Changes& changes);
    void advance(Time now, kube::WallTime wall, bool is_leader);
    [[nodiscard]] std::optional<Time> next_wake() const;
    // The reports of others were read since this process became the leader, or cannot be read.
    [[nodiscard]] bool is_read(Time now) const { return is_leader_ && (has_read_ || now >= awaited_until_); }
    [[nodiscard]] std::vector<kube::LogLine> take_log() { return log_.take(); }

 private:
    enum class Step : uint8_t { Read, Create, Write, Remove };
    // A report of another process.
    struct Other {
        std::string text;
        GatewayReport report;
        Time since{};  // when this text was seen first
        bool is_old = false;
        bool is_applied = false;  // to the board, for all Services
    };

    void start_round(Time now, kube::WallTime wall);
    // True: a request was sent.
    [[nodiscard]] bool write_own(Time now, kube::WallTime wall);
    [[nodiscard]] std::map<std::string, GatewayReport> own_reports(Time now);
    void remove(const GatewayReport& report);
    void send(Step step, kube::Request request);
    void process_response(Time now, kube::WallTime wall);
    void process_annotations(Time now);
    void drop_old(Time now);
    void apply_to_board();
    void refuse(const std::string& why, Time now);

    const Settings settings_;
    const kube::ObjectName lease_;
    kube::Transport& transport_;
    kube::WriteLimiter& limiter_;
    ProgrammedBoard& board_;
    const Read read_;
    kube::JsonTree tree_;
    kube::LogLines log_;

    // Version of each Service that has an address of Penstock.
    std::map<kube::ObjectName, uint64_t> services_;
    uint64_t seen_ = 0;  // newest version of a Service of type LoadBalancer
    bool has_versions_ = true;
    std::set<kube::ObjectName> changed_;  // Services that note() reported since apply_to_board()
    // Something changed since the last comparison with written_.
    bool own_changed_ = true;
    uint64_t own_version_ = 0;  // of the board, at that comparison

    std::map<std::string, GatewayReport> written_;  // last confirmed, by gateway
    std::map<std::string, GatewayReport> sent_;     // by the request in progress
    std::string removed_;                           // gateway of the request in progress
    Time written_at_ = Time::min();
    uint64_t beat_ = 0;
    std::map<std::string, Time> long_since_;  // gateways whose report has no room, and since when

    std::map<std::string, Other> others_;
    bool is_leader_ = false;
    bool has_read_ = false;
    Time awaited_until_ = Time::min();

    Time sent_at_{};  // of a request that starts now
    kube::OneResponse response_;
    std::optional<kube::Transport::RequestId> request_;
    Step step_ = Step::Read;
    Time next_round_ = Time::min();
    std::string refused_why_;  // last refusal that was logged
};

}  // namespace penstock::sync
