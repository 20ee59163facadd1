// SPDX-License-Identifier: Apache-2.0
// The clients to which a VIP may answer echo requests: those that at least one of its Services allows
// (SRC-006). A VIP may have a Service for each port, each with its own source ranges. Workers look up their
// union, which is at most two lists.
#pragma once

#include <span>

#include "dataplane/lb/service.hpp"

namespace penstock::lb {

class VipAudience {
 public:
    VipAudience() = default;  // no client
    // Control threads. Null stands for a Service without source ranges.
    explicit VipAudience(std::span<const SourceFilter* const> filters);
    [[nodiscard]] bool includes(const IpAddr& client) const noexcept {
        return is_everyone_ || listed_.allows(client) || not_denied_.allows(client);
    }

 private:
    bool is_everyone_ = false;
    SourceFilter listed_{true, {}};      // union of the lists that allow
    SourceFilter not_denied_{true, {}};  // from the lists that deny; excludes the prefixes common to all
};

}  // namespace penstock::lb
