// What penstockctl can ask of a gateway: one function a call of the API, errors already in the words of the CLI. An interface, so that
// commands are tested without a daemon; connect() gives the real one. Errc::Unavailable means that the daemon is not there.
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
    // Calls `each` for one connection after the other, as they arrive.
    virtual Status connections(const v1::ListConnectionsRequest& request,
                               const std::function<void(const v1::Connection&)>& each) = 0;
    // Likewise for affinity entries.
    virtual Status affinity(const v1::ListAffinityRequest& request,
                            const std::function<void(const v1::AffinityEntry&)>& each) = 0;
    virtual Result<v1::ClearAffinityResponse> clear_affinity(const v1::ClearAffinityRequest& request) = 0;
    virtual Result<v1::Counters> counters() = 0;
    virtual Result<v1::ListRoutesResponse> routes() = 0;
    virtual Result<v1::ListNeighboursResponse> neighbours() = 0;
    virtual Result<v1::ListFlowsResponse> flows() = 0;
    virtual Result<v1::Explanation> explain(const v1::ExplainRequest& request) = 0;
    virtual Result<v1::SetLogLevelResponse> set_log_level(const v1::SetLogLevelRequest& request) = 0;
    virtual Result<v1::SetDrainedResponse> set_drained(const v1::SetDrainedRequest& request) = 0;
    // Of penstock-sync: only where connect() was given its socket.
    virtual Result<v1::Sync> sync() = 0;
};

// The two programs that a command may ask; each has a socket of its own.
enum class Program : uint8_t { Penstockd, PenstockSync };

// Does not talk to the program yet, which is there to be named in errors. Fails where a certificate file cannot be read. No call waits
// longer than `timeout_s`.
[[nodiscard]] Result<std::unique_ptr<Gateway>> connect(Program program, const client::Target& target,
                                                       const client::TlsFiles& tls, uint32_t timeout_s);

}  // namespace penstock::cli
