// SPDX-License-Identifier: Apache-2.0
// Notices that the gateway detects itself about the Services that it serves, as state machines without
// threads or clock. Each keeps its own notices; together they are v1::Observed.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "control/gateway/care/local_sockets.hpp"
#include "control/model/observed.hpp"

namespace penstock::gateway {

// Merges several lists: sorted, each notice once, limited to a useful number.
[[nodiscard]] std::vector<model::ObservedNotice> merged(
    std::span<const std::vector<model::ObservedNotice>> lists);

// SNATPortExhausted (NAT-002): flows of a service port found no free source port. Reported once, because it
// is rare, and dropped after kOverAfter without a new occurrence.
class ExhaustionWatch {
 public:
    using Time = std::chrono::steady_clock::time_point;
    void met(const model::ServiceKey& key, Time now) { last_[key] = now; }
    // Drops expired notices. A notice expires only in this call.
    void work(Time now);
    [[nodiscard]] std::vector<model::ObservedNotice> notices() const;

    static constexpr std::chrono::minutes kOverAfter{10};

 private:
    std::map<model::ServiceKey, Time> last_;
};

// NodePortInUse (NODEPORT-010): a program on this host listens on the number of a NodePort. The NodePort
// takes precedence for traffic that arrives; the program receives traffic only from the host itself.
class NodePortWatch {
 public:
    // The service port in force; null: none.
    void set(const model::ServiceKey& key, const model::Service* service);
    // Whether numbers were added or removed since the last call.
    [[nodiscard]] bool take_changed() { return std::exchange(changed_, false); }
    void look(std::span<const LocalListener> listeners);
    [[nodiscard]] const std::vector<model::ObservedNotice>& notices() const noexcept { return notices_; }

 private:
    using Number = std::pair<Protocol, L4Port>;
    std::map<model::ServiceKey, std::set<Number>> by_service_;
    std::map<Number, std::set<model::ServiceKey>> owners_;
    std::vector<model::ObservedNotice> notices_;
    bool changed_ = false;
};

// UnsupportedAnnotation (ANN-G4): a Service requests flow records of a gateway that writes none.
class AccessLogWatch {
 public:
    // The service port in force; null: none.
    void set(const model::ServiceKey& key, const model::Service* service);
    [[nodiscard]] std::vector<model::ObservedNotice> notices() const;

 private:
    std::set<model::ServiceKey> requested_;
};

}  // namespace penstock::gateway
