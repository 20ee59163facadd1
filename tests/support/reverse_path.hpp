// SPDX-License-Identifier: Apache-2.0
// For tests of packets from a source without a route.
#pragma once

#include "dataplane/config/packet_policy.hpp"

namespace penstock::test {

[[nodiscard]] inline config::PacketPolicy without_reverse_path_check() {
    config::PacketPolicy policy;
    policy.reverse_path.fill(config::ReversePath::Off);
    return policy;
}

}  // namespace penstock::test
