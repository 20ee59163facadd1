// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/status_service.hpp"

#include <utility>

#include "control/rpc/convert.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/limits.hpp"

namespace penstock::rpc {
namespace {

Result<SocketFilter> socket_filter(const v1::SocketAddress& message, const char* field) {
    SocketFilter filter;
    if (!message.address().empty()) {
        PENSTOCK_TRY_IN(field, filter.address, IpAddr::parse(message.address()));
    }
    if (message.port() != 0) {
        PENSTOCK_TRY_IN(field, filter.port, l4_port(message.port()));
    }
    return filter;
}

// NOT_FOUND only if the request names an object: an empty gateway is not an error.
grpc::Status found_or_not(bool found, const std::string& namespace_name, const std::string& name) {
    if (found || (namespace_name.empty() && name.empty())) {
        return grpc::Status::OK;
    }
    return to_status(fail(Errc::NotFound, "there is no service " +
                                              (namespace_name.empty() ? "*" : namespace_name) + "/" +
                                              (name.empty() ? "*" : name))
                         .error());
}

}  // namespace

Result<ConnectionFilter> from_proto(const v1::ListConnectionsRequest& request) {
    ConnectionFilter filter;
    PENSTOCK_TRY(filter.client, socket_filter(request.client(), "client"));
    PENSTOCK_TRY(filter.frontend, socket_filter(request.frontend(), "frontend"));
    PENSTOCK_TRY(filter.backend, socket_filter(request.backend(), "backend"));
    if (request.protocol() != v1::PROTOCOL_UNSPECIFIED) {
        PENSTOCK_TRY(filter.protocol, from_proto(request.protocol()));
    }
    return filter;
}

Result<AffinityFilter> from_proto(const v1::ListAffinityRequest& request) {
    PENSTOCK_TRY(const auto client, optional_address(request.client(), "client"));
    return AffinityFilter{request.namespace_(), request.name(), client};
}

class StatusService::ReaderSlot {
 public:
    explicit ReaderSlot(std::atomic<int>* readers) noexcept : readers_(readers) {}
    ReaderSlot(ReaderSlot&& other) noexcept : readers_(std::exchange(other.readers_, nullptr)) {}
    ReaderSlot& operator=(ReaderSlot&&) = delete;
    ~ReaderSlot() {
        if (readers_ != nullptr) {
            --*readers_;
        }
    }

 private:
    std::atomic<int>* readers_;  // null: the caller is not limited
};

std::optional<StatusService::ReaderSlot> StatusService::take_reader_slot(const Caller& caller) const {
    if (authorizer_.may_configure(caller)) {
        return ReaderSlot(nullptr);
    }
    ReaderSlot slot(&readers_);
    return ++readers_ <= kReadersMax ? std::optional(std::move(slot)) : std::nullopt;
}

namespace {

grpc::Status too_many_readers() {
    return to_status(
        fail(Errc::Exhausted, "too many concurrent calls of read-only clients, try again later").error());
}

}  // namespace

template <typename Response, typename Ask>
grpc::Status StatusService::answer(const grpc::ServerContext& context, Response* response, Ask&& ask) const {
    const Caller caller = caller_of(context);
    if (const auto status = authorizer_.may_read(caller); !status) {
        return to_status(status);
    }
    const auto slot = take_reader_slot(caller);
    if (!slot) {
        return too_many_readers();
    }
    *response = ask();
    return grpc::Status::OK;
}

template <typename Request, typename Entry, typename List>
grpc::Status StatusService::stream(const grpc::ServerContext& context, const Request& request,
                                   grpc::ServerWriter<Entry>& writer, List&& list) const {
    const Caller caller = caller_of(context);
    if (const auto status = authorizer_.may_read(caller); !status) {
        return to_status(status);
    }
    const auto slot = take_reader_slot(caller);
    if (!slot) {
        return too_many_readers();
    }
    const auto filter = from_proto(request);
    if (!filter) {
        return to_status(filter.error());
    }
    uint64_t sent = 0;
    list(*filter, [&](const Entry& entry) {
        // Write fails after the client has disconnected. The additional check ends the walk early if nothing
        // matches for long.
        return !context.IsCancelled() && writer.Write(entry) &&
               (request.limit() == 0 || ++sent < request.limit());
    });
    return grpc::Status::OK;
}

grpc::Status StatusService::service_exists(const std::string& namespace_name, const std::string& name) const {
    return found_or_not(name.empty() || source_.services(namespace_name, name).services_size() > 0,
                        namespace_name, name);
}

grpc::Status StatusService::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                                      v1::Status* response) {
    return answer(*context, response, [&] { return source_.status(); });
}

grpc::Status StatusService::ListPorts(grpc::ServerContext* context, const v1::ListPortsRequest*,
                                      v1::ListPortsResponse* response) {
    return answer(*context, response, [&] { return source_.ports(); });
}

grpc::Status StatusService::ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest*,
                                        v1::ListWorkersResponse* response) {
    return answer(*context, response, [&] { return source_.workers(); });
}

grpc::Status StatusService::ListServices(grpc::ServerContext* context, const v1::ListServicesRequest* request,
                                         v1::ListServicesResponse* response) {
    const auto status =
        answer(*context, response, [&] { return source_.services(request->namespace_(), request->name()); });
    return status.ok() ? found_or_not(response->services_size() > 0, request->namespace_(), request->name())
                       : status;
}

grpc::Status StatusService::ListBackends(grpc::ServerContext* context, const v1::ListBackendsRequest* request,
                                         v1::ListBackendsResponse* response) {
    const auto status = answer(*context, response,
                               [&] { return source_.backends(request->namespace_(), request->service()); });
    // A Service without endpoints is not an error; a Service that does not exist is.
    return status.ok() && response->backends_size() == 0
               ? service_exists(request->namespace_(), request->service())
               : status;
}

grpc::Status StatusService::ListConnections(grpc::ServerContext* context,
                                            const v1::ListConnectionsRequest* request,
                                            grpc::ServerWriter<v1::Connection>* writer) {
    return stream(*context, *request, *writer,
                  [&](const auto& filter, const auto& visit) { source_.connections(filter, visit); });
}

grpc::Status StatusService::ListAffinity(grpc::ServerContext* context, const v1::ListAffinityRequest* request,
                                         grpc::ServerWriter<v1::AffinityEntry>* writer) {
    bool is_empty = true;
    const auto status = stream(*context, *request, *writer, [&](const auto& filter, const auto& visit) {
        source_.affinity(filter, [&](const v1::AffinityEntry& entry) {
            is_empty = false;
            return visit(entry);
        });
    });
    return status.ok() && is_empty ? service_exists(request->namespace_(), request->name()) : status;
}

grpc::Status StatusService::GetCounters(grpc::ServerContext* context, const v1::GetCountersRequest*,
                                        v1::Counters* response) {
    return answer(*context, response, [&] { return source_.counters(); });
}

grpc::Status StatusService::ListRoutes(grpc::ServerContext* context, const v1::ListRoutesRequest*,
                                       v1::ListRoutesResponse* response) {
    return answer(*context, response, [&] { return source_.routes(); });
}

grpc::Status StatusService::ListNeighbours(grpc::ServerContext* context, const v1::ListNeighboursRequest*,
                                           v1::ListNeighboursResponse* response) {
    return answer(*context, response, [&] { return source_.neighbours(); });
}

grpc::Status StatusService::ListFlows(grpc::ServerContext* context, const v1::ListFlowsRequest*,
                                      v1::ListFlowsResponse* response) {
    return answer(*context, response, [&] { return source_.flows(); });
}

grpc::Status StatusService::ListVips(grpc::ServerContext* context, const v1::ListVipsRequest*,
                                     v1::ListVipsResponse* response) {
    return answer(*context, response, [&] { return source_.vips(); });
}

grpc::Status StatusService::ListBfdSessions(grpc::ServerContext* context, const v1::ListBfdSessionsRequest*,
                                            v1::ListBfdSessionsResponse* response) {
    return answer(*context, response, [&] { return source_.bfd_sessions(); });
}

grpc::Status StatusService::ListShares(grpc::ServerContext* context, const v1::ListSharesRequest*,
                                       v1::ListSharesResponse* response) {
    return answer(*context, response, [&] { return source_.shares(); });
}

}  // namespace penstock::rpc
