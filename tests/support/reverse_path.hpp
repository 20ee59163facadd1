// For tests of what happens to packets whose source has no route.
#pragma once

#include "dataplane/config/packet_policy.hpp"

namespace penstock::test {

[[nodiscard]] inline config::PacketPolicy without_reverse_path_check() {
    config::PacketPolicy policy;
    policy.reverse_path.fill(config::ReversePath::Off);
    return policy;
}

}  // namespace penstock::test
