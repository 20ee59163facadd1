// A gRPC channel to a gateway. Thread-safe once made.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "control/client/target.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::client {

// Reads the certificate files now, so that a renewed certificate is used by the next channel. Connects only when it is used. The channel
// shares nothing with others: its caller alone decides when to try again.
[[nodiscard]] Result<std::shared_ptr<grpc::Channel>> open_channel(const Target& target, const TlsFiles& tls);

}  // namespace penstock::client
