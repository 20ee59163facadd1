// SPDX-License-Identifier: Apache-2.0
// The service ports of a whole cluster as messages: what a control plane would send, in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/v1/config.pb.h"

namespace penstock::perf {

struct Population {
    uint32_t services = 0;
    uint32_t endpoints = 0;  // of each service
};

// Each service port has a cluster IP, a load balancer's address and a NodePort; one in four is
// source-preserving. If `moved` is above 0, its last endpoint has moved that many times to another address.
[[nodiscard]] v1::Service service(const Population& population, uint32_t number, uint32_t moved = 0);

// The whole in parts of about 1 MiB, serialized.
[[nodiscard]] std::vector<std::string> full_state(const Population& population, uint64_t version);
// One service port whose last endpoint has moved `moved` times.
[[nodiscard]] std::string one_endpoint(const Population& population, uint32_t number, uint32_t moved,
                                       uint64_t version);

}  // namespace penstock::perf
