// What the gateway itself finds out about the Services that it serves, as machines without threads or clock. Each keeps its own notices;
// together they are v1::Observed.
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

// Several lists as one: sorted, each notice once, and no more than are of use.
[[nodiscard]] std::vector<model::ObservedNotice> merged(
    std::span<const std::vector<model::ObservedNotice>> lists);

// SNATPortExhausted (NAT-002): flows of a service port found no free source port. Rare enough to be said once, and forgotten when it has
// not happened for a while.
class ExhaustionWatch {
 public:
    using Time = std::chrono::steady_clock::time_point;
    void met(const model::ServiceKey& key, Time now) { last_[key] = now; }
    // Forgets what is over. When that changes next, work() is due.
    void work(Time now);
    [[nodiscard]] std::vector<model::ObservedNotice> notices() const;

    static constexpr std::chrono::minutes kOverAfter{10};

 private:
    std::map<model::ServiceKey, Time> last_;
};

// NodePortInUse (NODEPORT-010): a program on this host listens on the number of a NodePort. The NodePort wins where traffic arrives; the
// program hears only from the host itself.
class NodePortWatch {
 public:
    // The service port as it is in force; null: not at all.
    void set(const model::ServiceKey& key, const model::Service* service);
    // Numbers have come or gone since the last call.
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

}  // namespace penstock::gateway
