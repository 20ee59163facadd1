// Which clients are the cluster's own, its Pods: a frontend may have another backend set for them (ETP-006, NAT-004). Flows outlive a
// change of the Pod CIDRs, and where among the workers a flow lives follows from what its client was when it began. So a version also knows
// what a client may have been before: inside at some time, outside at some time.
#pragma once

#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

class ClusterClients {
 public:
    ClusterClients() = default;  // nobody is inside, nor was
    explicit ClusterClients(std::vector<Prefix> pod_cidrs);
    // The next version: from now on these are inside.
    [[nodiscard]] ClusterClients changed_to(std::vector<Prefix> pod_cidrs) const;

    [[nodiscard]] bool are_inside(const IpAddr& client) const noexcept { return now_.allows(client); }
    [[nodiscard]] bool were_inside(const IpAddr& client) const noexcept { return ever_.allows(client); }
    [[nodiscard]] bool were_outside(const IpAddr& client) const noexcept { return !always_.allows(client); }

    // So many prefixes of the past are kept apart; with more, everybody may have been anything.
    static constexpr size_t kRememberedMax = 16'384;

 private:
    std::vector<Prefix> ever_inside_, always_inside_;
    SourceFilter now_{true, {}}, ever_{true, {}}, always_{true, {}};
};

}  // namespace penstock::lb
