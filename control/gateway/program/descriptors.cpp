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
    // Refused: then it is as many as before, and whoever lacks one says so.
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace penstock::gateway
