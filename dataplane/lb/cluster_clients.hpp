// SPDX-License-Identifier: Apache-2.0
// Which clients are inside the cluster (Pods): a frontend may have another backend set for them (ETP-006,
// NAT-004). Flows outlive a change of the Pod CIDRs, and a flow's owner worker depends on whether its client
// was inside when the flow began. So a version also records what a client may have been before: inside at
// some time, outside at some time.
#pragma once

#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

class ClusterClients {
 public:
    ClusterClients() = default;  // no client is or was inside
    explicit ClusterClients(std::vector<Prefix> pod_cidrs);
    // The next version, in which these prefixes are inside.
    [[nodiscard]] ClusterClients changed_to(std::vector<Prefix> pod_cidrs) const;

    [[nodiscard]] bool are_inside(const IpAddr& client) const noexcept { return now_.allows(client); }
    [[nodiscard]] bool were_inside(const IpAddr& client) const noexcept { return ever_.allows(client); }
    [[nodiscard]] bool were_outside(const IpAddr& client) const noexcept { return !always_.allows(client); }

    // Maximum number of past prefixes that are recorded. Beyond it, every client counts as having been both
    // inside and outside.
    static constexpr size_t kRememberedMax = 16'384;

 private:
    std::vector<Prefix> ever_inside_, always_inside_;
    SourceFilter now_{true, {}}, ever_{true, {}}, always_{true, {}};
};

}  // namespace penstock::lb
