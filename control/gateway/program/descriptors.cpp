// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace penstock::gateway {

void raise_descriptor_limit() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kDescriptorsWanted) {
        return;
    }
    limit.rlim_cur = std::min<rlim_t>(kDescriptorsWanted, limit.rlim_max);
    // If refused, the limit is unchanged, and a component without a descriptor reports an error.
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace penstock::gateway
