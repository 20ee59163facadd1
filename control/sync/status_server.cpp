// SPDX-License-Identifier: Apache-2.0
#include "control/sync/status_server.hpp"

#include <grpcpp/grpcpp.h>

#include <array>
#include <optional>
#include <utility>

#include "control/base/file_lock.hpp"
#include "control/rpc/auth.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/listener.hpp"
#include "control/sync/addresses/address_messages.hpp"
#include "penstock/v1/sync.grpc.pb.h"

namespace penstock::sync {
namespace {

uint64_t ms(std::chrono::milliseconds time) {
    return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}

v1::SyncCollection::State state_of(kube::CollectionStatus::State state) {
    switch (state) {
        case kube::CollectionStatus::State::Waiting:
            return v1::SyncCollection::STATE_WAITING;
        case kube::CollectionStatus::State::Listing:
            return v1::SyncCollection::STATE_LISTING;
        case kube::CollectionStatus::State::Watching:
            return v1::SyncCollection::STATE_WATCHING;
        case kube::CollectionStatus::State::BackingOff:
            return v1::SyncCollection::STATE_BACKING_OFF;
    }
    return v1::SyncCollection::STATE_UNSPECIFIED;
}

void fill(v1::SyncCollection& message, const kube::CollectionStatus& collection) {
    message.set_kind(collection.kind);
    message.set_path(collection.path);
    message.set_state(state_of(collection.state));
    message.set_listed(collection.listed);
    message.set_objects(collection.objects);
    message.set_quarantined(collection.quarantined);
    message.set_resource_version(collection.resource_version);
    if (collection.last_event_age) {
        message.set_last_event_age_ms(ms(*collection.last_event_age));
    }
    if (collection.stale_age) {
        message.set_stale_age_ms(ms(*collection.stale_age));
    }
    message.set_last_error(collection.last_error);
    message.set_watch_restarts(collection.watch_restarts);
    message.set_relists(collection.relists);
    message.mutable_errors()->insert(collection.errors.begin(), collection.errors.end());
}

void fill(v1::SyncGateway& message, const GatewayStatus& gateway) {
    message.set_target(gateway.target);
    message.set_name(gateway.name);
    message.set_connected(gateway.connected);
    message.set_last_error(gateway.last_error);
    message.set_leader(gateway.leader);
    message.set_heartbeat_age_ms(ms(gateway.heartbeat_age));
    message.set_desired_version(gateway.desired_version);
    message.set_applied_version(gateway.applied_version);
    message.set_lag_ms(ms(gateway.lag));
    if (gateway.applied_age) {
        message.set_applied_age_ms(ms(*gateway.applied_age));
    }
    message.set_changes_waiting(gateway.changes_waiting);
    message.set_services(gateway.services);
    message.set_refused(gateway.refused);
    message.set_full_states(gateway.full_states);
    message.set_deltas(gateway.deltas);
    message.set_audit_differences(gateway.audit_differences);
    const LatencyHistogram& latency = gateway.apply_latency;
    message.mutable_apply_latency()->mutable_bounds_s()->Add(LatencyHistogram::kBounds.begin(),
                                                             LatencyHistogram::kBounds.end());
    message.mutable_apply_latency()->mutable_counts()->Add(latency.counts.begin(), latency.counts.end());
    message.mutable_apply_latency()->set_sum_s(latency.sum_s);
}

void fill(v1::SyncEvents& message, const kube::EventsStatus& events) {
    message.set_enabled(events.enabled);
    message.set_posted(events.posted);
    message.set_repeated(events.repeated);
    message.set_waiting(events.waiting);
    auto& dropped = *message.mutable_dropped();
    dropped["overflow"] = events.dropped_overflow;
    dropped["rate"] = events.dropped_rate;
    dropped["failed"] = events.dropped_failed;
    dropped["forbidden"] = events.dropped_forbidden;
    dropped["gone"] = events.dropped_gone;
}

class StatusService final : public v1::SyncStatus::Service {
 public:
    explicit StatusService(ReadSync read) : read_(std::move(read)) {}

    grpc::Status GetSync(grpc::ServerContext* context, const v1::GetSyncRequest*,
                         v1::Sync* response) override {
        if (const Status allowed = rpc::Authorizer().may_read(rpc::caller_of(*context)); !allowed) {
            return rpc::to_status(allowed);
        }
        *response = to_proto(read_());
        return grpc::Status::OK;
    }

    grpc::Status ListPools(grpc::ServerContext* context, const v1::ListPoolsRequest*,
                           v1::ListPoolsResponse* response) override {
        const auto status = read_addresses(*context);
        if (!status) {
            return rpc::to_status(status.error());
        }
        *response = pools_message(*status);
        return grpc::Status::OK;
    }

    grpc::Status ListAddresses(grpc::ServerContext* context, const v1::ListAddressesRequest* request,
                               v1::ListAddressesResponse* response) override {
        const auto status = read_addresses(*context);
        if (!status) {
            return rpc::to_status(status.error());
        }
        *response = addresses_message(*status, *request);
        return grpc::Status::OK;
    }

 private:
    [[nodiscard]] Result<AddressStatus> read_addresses(const grpc::ServerContext& context) const {
        PENSTOCK_TRY_STATUS(rpc::Authorizer().may_read(rpc::caller_of(context)));
        SyncReading reading = read_();
        if (!reading.addresses) {
            return fail(Errc::NotFound, "this penstock-sync assigns no addresses from pools");
        }
        return std::move(*reading.addresses);
    }

    ReadSync read_;
};

}  // namespace

v1::Sync to_proto(const SyncReading& reading) {
    v1::Sync message;
    message.set_software_version(reading.version);
    message.set_state_source(reading.identity);
    message.set_uptime_ms(ms(reading.uptime));
    message.set_resident_bytes(reading.resident_bytes);
    message.set_source(reading.source.source);
    message.set_heartbeat_age_ms(ms(reading.source.heartbeat_age));
    for (const kube::CollectionStatus& collection : reading.source.collections) {
        fill(*message.add_collections(), collection);
    }
    for (const GatewayStatus& gateway : reading.gateways) {
        fill(*message.add_gateways(), gateway);
    }
    fill(*message.mutable_events(), reading.events);
    return message;
}

// Members are destroyed in reverse order: the server, its service, then the lock that excludes other
// processes.
struct StatusServer::Impl {
    explicit Impl(ReadSync read) : service(std::move(read)) {}
    ~Impl() { rpc::stop(listening); }

    FileLock lock;
    StatusService service;
    rpc::Listening listening;
};

StatusServer::StatusServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StatusServer::~StatusServer() = default;

Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& path, const std::string& group,
                                                          ReadSync read) {
    auto impl = std::make_unique<Impl>(std::move(read));
    PENSTOCK_TRY(impl->lock, FileLock::acquire(path + ".lock", "socket " + path));
    rpc::ServerOptions options;
    options.unix_paths = {path};
    options.socket_group = group;
    const std::array<grpc::Service*, 1> services{&impl->service};
    PENSTOCK_TRY(impl->listening, rpc::listen(options, "penstock-sync", services));
    return std::unique_ptr<StatusServer>(new StatusServer(std::move(impl)));
}

}  // namespace penstock::sync
