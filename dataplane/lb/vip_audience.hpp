// Who may be told that a VIP is there: clients that some Service behind it lets in (SRC-006). A VIP may have as many Services as it has
// ports, each with its source ranges; what a worker asks is their union, two lists at most.
#pragma once

#include <span>

#include "dataplane/lb/service.hpp"

namespace penstock::lb {

class VipAudience {
 public:
    VipAudience() = default;  // nobody
    // Control threads; null stands for a Service without ranges.
    explicit VipAudience(std::span<const SourceFilter* const> filters);
    [[nodiscard]] bool includes(const IpAddr& client) const noexcept {
        return is_everyone_ || listed_.allows(client) || not_denied_.allows(client);
    }

 private:
    bool is_everyone_ = false;
    SourceFilter listed_{true, {}};      // by lists of those who may
    SourceFilter not_denied_{true, {}};  // by lists of those who may not: whom not all of them name
};

}  // namespace penstock::lb
