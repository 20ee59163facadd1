// SPDX-License-Identifier: Apache-2.0
// A gRPC channel to a gateway. Thread-safe after creation.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "control/client/target.hpp"
#include "control/tls/material.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::client {

// Of received messages. The response with a full state, or a list of the services of a million connections,
// exceeds gRPC's default of 4 MB.
inline constexpr int kAnySize = -1;

// `material` is required for a TCP target; the channel keeps a copy. Connects only on first use. The channel
// shares no connection with other channels: only its caller decides on retries. A call ends at a message of
// more than `message_bytes_max`. gRPC's own log lines are dropped unless the program has a sink for them
// (process::take_grpc_lines).
[[nodiscard]] Result<std::shared_ptr<grpc::Channel>> open_channel(const Target& target,
                                                                  const tls::Material* material,
                                                                  int message_bytes_max = kAnySize);

}  // namespace penstock::client
