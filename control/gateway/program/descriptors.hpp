// SPDX-License-Identifier: Apache-2.0
// The limit on file descriptors of this process. A service manager grants 1,024 by default and far more on
// request (systemd's recommendation). On a node each healthCheckNodePort takes one descriptor for each
// NodePort address: a few hundred Services would leave none for gRPC, the saved state and the probes.
#pragma once

#include <cstddef>

namespace penstock::gateway {

// More than all NodePorts with health checks on a dozen addresses take.
inline constexpr size_t kDescriptorsWanted = 65'536;

// Raises the limit up to that value, as far as granted; never lowers it. Called once, at the start.
void raise_descriptor_limit() noexcept;

}  // namespace penstock::gateway
