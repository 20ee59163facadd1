// SPDX-License-Identifier: Apache-2.0
// Interfaces of the gateway that the gRPC services use. penstockd's gateway room implements them; tests use a
// fake. All functions may be called from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/rpc/state_update.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/capture/program.hpp"
#include "dataplane/capture/record.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "penstock/v1/config.pb.h"
#include "penstock/v1/debug.pb.h"
#include "penstock/v1/peers.pb.h"
#include "penstock/v1/status.pb.h"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::rpc {

// Current state of the state streams.
struct ControlPlane {
    bool connected = false;  // a stream leads
    std::string source;      // of the leader; "" if it sends none
    uint32_t waiting = 0;    // number of streams that wait for the lead
    bool operator==(const ControlPlane&) const = default;
};

class StateTarget {
 public:
    virtual ~StateTarget() = default;
    // The current identity, with the applied version and the software version.
    [[nodiscard]] virtual v1::Identity identity() const = 0;
    // The current notices of the gateway itself about Services.
    [[nodiscard]] virtual v1::Observed observed() const = 0;
    // update.done is called once, possibly before submit() returns.
    virtual void submit(StateUpdate update) = 0;
    // Called after each change, one call at a time.
    virtual void set_control(ControlPlane control) = 0;
};

// An unset part matches everything.
struct SocketFilter {
    std::optional<IpAddr> address;
    std::optional<L4Port> port;
    [[nodiscard]] bool matches(const IpAddr& a, L4Port p) const {
        return (!address || *address == a) && (!port || *port == p);
    }
};
struct ConnectionFilter {
    SocketFilter client, frontend, backend;
    std::optional<Protocol> protocol;
};

// "" and an unset client match everything.
struct AffinityFilter {
    std::string namespace_name, name;
    std::optional<IpAddr> client;
};

// Returns whole messages; there is no other layer between the tables and the wire.
class StatusSource {
 public:
    virtual ~StatusSource() = default;
    [[nodiscard]] virtual v1::Status status() const = 0;
    [[nodiscard]] virtual v1::ListPortsResponse ports() const = 0;
    [[nodiscard]] virtual v1::ListWorkersResponse workers() const = 0;
    // "" matches everything.
    [[nodiscard]] virtual v1::ListServicesResponse services(std::string_view namespace_name,
                                                            std::string_view name) const = 0;
    [[nodiscard]] virtual v1::ListBackendsResponse backends(std::string_view namespace_name,
                                                            std::string_view service) const = 0;
    // Calls `visit` for each match until `visit` returns false.
    virtual void connections(const ConnectionFilter& filter,
                             const std::function<bool(const v1::Connection&)>& visit) const = 0;
    virtual void affinity(const AffinityFilter& filter,
                          const std::function<bool(const v1::AffinityEntry&)>& visit) const = 0;
    [[nodiscard]] virtual v1::Counters counters() const = 0;
    [[nodiscard]] virtual v1::ListRoutesResponse routes() const = 0;
    [[nodiscard]] virtual v1::ListNeighboursResponse neighbours() const = 0;
    [[nodiscard]] virtual v1::ListFlowsResponse flows() const = 0;
    [[nodiscard]] virtual v1::ListVipsResponse vips() const = 0;
    [[nodiscard]] virtual v1::ListBfdSessionsResponse bfd_sessions() const = 0;
    [[nodiscard]] virtual v1::ListSharesResponse shares() const = 0;
};

struct ExplainQuestion {
    packet::FlowKey key;
    std::optional<uint32_t> port = {};  // absent: the port of the route to the source
    uint32_t queue = 0;
    bool tcp_not_syn = false;
};

struct CaptureOrder {
    capture::Program filter;
    v1::CaptureRequest::Form form = v1::CaptureRequest::FORM_RECEIVED;
    std::string namespace_name, name;  // "": any Service
    std::optional<IpAddr> client;
    capture::Points points = capture::Points::all();
    uint64_t records_max = 0;  // 0: no limit
    std::chrono::seconds limit{60};
    uint32_t snap_bytes = 128;
};

// The caller of a capture.
class CaptureClient {
 public:
    virtual ~CaptureClient() = default;
    // May wait for the client. False: the client is gone.
    virtual bool send(const v1::CaptureChunk& chunk) = 0;
    [[nodiscard]] virtual bool is_gone() const = 0;
};

class DebugTarget {
 public:
    virtual ~DebugTarget() = default;
    // InvalidArgument: no such port or queue.
    [[nodiscard]] virtual Result<v1::Explanation> explain(const ExplainQuestion& question) const = 0;
    // Returns the number of entries cleared. NotFound: the named Service does not exist.
    [[nodiscard]] virtual Result<uint64_t> clear_affinity(const AffinityFilter& filter) const = 0;
    virtual v1::SetDrainedResponse set_drained(const v1::SetDrainedRequest& request) = 0;
    // Outdated: there are no shares, or copies are not complete.
    virtual Result<v1::FailBackResponse> fail_back() = 0;
    // Begins an upgrade. `requested_by`: identity of the client. Outdated: there is no supervisor, or the
    // gateway does not forward yet. AlreadyExists: an upgrade is under way. NotFound, PermissionDenied,
    // InvalidArgument: the binary.
    virtual Result<v1::UpgradeResponse> upgrade(const v1::UpgradeRequest& request,
                                                const std::string& requested_by) = 0;
    // Captures packets until the order's limits, or until the client is gone. NotFound: the Service.
    // AlreadyExists: another capture runs.
    virtual Status capture(const CaptureOrder& order, CaptureClient& client) = 0;
};

// Another gateway that follows this one's connections.
class CopyReceiver {
 public:
    virtual ~CopyReceiver() = default;
    // May wait for the receiver. False: it is gone, or this gateway stops.
    virtual bool send(const v1::ConnectionCopies& copies) = 0;
    // Waits. False: as send().
    virtual bool wait(std::chrono::milliseconds duration) = 0;
};

class PeerTarget {
 public:
    virtual ~PeerTarget() = default;
    // The names of which a gateway's certificate must have one. NotFound: the gateway is not in the plan.
    // PermissionDenied: the gateways have no share in common.
    [[nodiscard]] virtual Result<std::vector<std::string>> certificate_names_of(
        const std::string& gateway) const = 0;
    // Sends copies until the receiver is gone. Errors as above, when a newer plan is in force.
    virtual Status send_copies(const v1::FollowConnectionsRequest& request, CopyReceiver& receiver) = 0;
};

}  // namespace penstock::rpc
