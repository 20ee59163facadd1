// A gRPC channel to a gateway. Thread-safe once made.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "control/client/target.hpp"
#include "control/tls/material.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::client {

// `material` is used for a TCP target, which fails without; the channel keeps a copy. Connects only when it is used. The channel shares
// nothing with others: its caller alone decides when to try again. gRPC's own log lines are dropped unless the program takes them
// (process::take_grpc_lines).
[[nodiscard]] Result<std::shared_ptr<grpc::Channel>> open_channel(const Target& target,
                                                                  const tls::Material* material);

}  // namespace penstock::client
