// SPDX-License-Identifier: Apache-2.0
// A gRPC channel to a gateway. Thread-safe after creation.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "control/client/target.hpp"
#include "control/tls/material.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::client {

// `material` is required for a TCP target; the channel keeps a copy. Connects only on first use. The channel
// shares no connection with other channels: only its caller decides on retries. gRPC's own log lines are
// dropped unless the program has a sink for them (process::take_grpc_lines).
[[nodiscard]] Result<std::shared_ptr<grpc::Channel>> open_channel(const Target& target,
                                                                  const tls::Material* material);

}  // namespace penstock::client
