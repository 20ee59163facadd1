// SPDX-License-Identifier: Apache-2.0
// The API of a gateway as penstockctl uses it: one function per call, with error texts for the CLI. An
// interface, so that commands are tested without a daemon; connect() returns the real implementation.
// Errc::Unavailable means that the daemon is not reachable.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "control/client/target.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/debug.pb.h"
#include "penstock/v1/status.pb.h"
#include "penstock/v1/sync.pb.h"

namespace penstock::cli {

class Gateway {
 public:
    virtual ~Gateway() = default;
    virtual Result<v1::Status> status() = 0;
    virtual Result<v1::ListPortsResponse> ports() = 0;
    virtual Result<v1::ListWorkersResponse> workers() = 0;
    virtual Result<v1::ListServicesResponse> services(const v1::ListServicesRequest& request) = 0;
    virtual Result<v1::ListBackendsResponse> backends(const v1::ListBackendsRequest& request) = 0;
    // Calls `each` for each connection as it arrives.
    virtual Status connections(const v1::ListConnectionsRequest& request,
                               const std::function<void(const v1::Connection&)>& each) = 0;
    // Calls `each` for each affinity entry as it arrives.
    virtual Status affinity(const v1::ListAffinityRequest& request,
                            const std::function<void(const v1::AffinityEntry&)>& each) = 0;
    virtual Result<v1::ClearAffinityResponse> clear_affinity(const v1::ClearAffinityRequest& request) = 0;
    virtual Result<v1::Counters> counters() = 0;
    virtual Result<v1::ListRoutesResponse> routes() = 0;
    virtual Result<v1::ListNeighboursResponse> neighbours() = 0;
    virtual Result<v1::ListVipsResponse> vips() = 0;
    virtual Result<v1::ListBfdSessionsResponse> bfd_sessions() = 0;
    virtual Result<v1::ListSharesResponse> shares() = 0;
    virtual Result<v1::ListFlowsResponse> flows() = 0;
    virtual Result<v1::Explanation> explain(const v1::ExplainRequest& request) = 0;
    virtual Result<v1::SetLogLevelResponse> set_log_level(const v1::SetLogLevelRequest& request) = 0;
    virtual Result<v1::FailBackResponse> fail_back() = 0;
    virtual Result<v1::SetDrainedResponse> set_drained(const v1::SetDrainedRequest& request) = 0;
    virtual Result<v1::UpgradeResponse> upgrade(const v1::UpgradeRequest& request) = 0;
    // Calls `each` for each part as it arrives, until the gateway ends the capture, `each` returns false, or
    // the file descriptor `interrupt` becomes readable. The latter two are no errors.
    virtual Status capture(const v1::CaptureRequest& request, int interrupt,
                           const std::function<bool(const v1::CaptureChunk&)>& each) = 0;
    // Status of penstock-sync. Only if connect() was called with its socket.
    virtual Result<v1::Sync> sync() = 0;
    // Address pools of penstock-sync. NotFound: it assigns no addresses. As sync().
    virtual Result<v1::ListPoolsResponse> pools() = 0;
    // The same for the addresses of Services.
    virtual Result<v1::ListAddressesResponse> addresses(const v1::ListAddressesRequest& request) = 0;
};

// The two programs that commands connect to. Each has its own socket.
enum class Program : uint8_t { Penstockd, PenstockSync };

// Does not connect yet; `program` is used in error messages. Fails if a certificate file cannot be read.
// Calls time out after `timeout_s`. `sync`: a connection to penstock-sync for addresses(), if `program` is
// penstockd; may be null.
[[nodiscard]] Result<std::unique_ptr<Gateway>> connect(Program program, const client::Target& target,
                                                       const client::TlsFiles& tls, uint32_t timeout_s,
                                                       std::unique_ptr<Gateway> sync = nullptr);

}  // namespace penstock::cli
