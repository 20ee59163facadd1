// How many descriptors this process may have. A service manager grants 1,024 at first and far more to who asks (systemd's own advice), and
// on a node each healthCheckNodePort takes one for each NodePort address: a few hundred Services would leave none for gRPC, the saved
// state and the probes.
#pragma once

#include <cstddef>

namespace penstock::gateway {

// More than every NodePort with health checks at a dozen addresses takes.
inline constexpr size_t kDescriptorsWanted = 65'536;

// Asks for as many as are granted, up to that; never gives any up. At the start, once.
void raise_descriptor_limit() noexcept;

}  // namespace penstock::gateway
