// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/listener.hpp"

#include <grp.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "control/log/log.hpp"
#include "control/process/grpc_lines.hpp"
#include "control/rpc/limits.hpp"
#include "control/rpc/state_message.hpp"

namespace penstock::rpc {
namespace {

// A control plane that disappears without closing its connection is detected after this time, instead of the
// two hours of TCP's default.
constexpr int kKeepaliveMs = 30'000;
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);

std::string reason() {
    return std::strerror(errno);
}

Result<gid_t> group_id(const std::string& name) {
    const struct group* entry = ::getgrnam(name.c_str());
    if (entry == nullptr) {
        return fail(Errc::NotFound, "--socket-group: unknown group " + name);
    }
    return entry->gr_gid;
}

// Log handler of gRPC. The library is never shut down: if a client has stopped reading while the server
// writes, its last shutdown waits ten seconds for a poller of its own (tcp_posix.cc, run_poller), and a
// gateway must stop within two. Its resources are released when the process exits. Its own lines are for its
// developers; this module logs the information for operators. Handshakes that fail before a certificate is
// received are the exception: a client without one, or a port scanner.
void log_grpc_line(bool is_error, std::string_view text) {
    constexpr std::string_view kHandshake = "Handshake failed with fatal error";
    if (text.starts_with(kHandshake)) {
        const size_t reason = text.rfind("::");
        log::get("rpc").warn("TLS handshake failed: {}",
                             reason == std::string_view::npos
                                 ? text
                                 : text.substr(reason + 2, text.find_last_not_of('.') - reason - 1));
        return;
    }
    log::get("rpc").log(is_error ? spdlog::level::debug : spdlog::level::trace, "grpc: {}", text);
}

// gRPC does not report why it cannot bind a socket.
std::string why_not(const std::filesystem::path& path) {
    std::error_code error;
    const auto status = std::filesystem::symlink_status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_socket(status)) {
        return "the path is an existing " +
               std::string(std::filesystem::is_directory(status) ? "folder" : "file") + " and not a socket";
    }
    return ::access(path.parent_path().c_str(), W_OK | X_OK) == 0 ? "the socket cannot be created" : reason();
}

// Sockets are created with this mask, so that there is no moment at which every user could connect.
class SocketMask {
 public:
    SocketMask() : former_(::umask(0117)) {}
    ~SocketMask() { ::umask(former_); }
    SocketMask(const SocketMask&) = delete;
    SocketMask& operator=(const SocketMask&) = delete;

 private:
    mode_t former_;
};

}  // namespace

Result<Listening> listen(const ServerOptions& options, const std::string& program,
                         std::span<grpc::Service* const> services,
                         const std::shared_ptr<grpc::ServerCredentials>& tls) {
    Listening listening;
    if (!options.tcp_addresses.empty()) {
        PENSTOCK_TRY(listening.tcp, TcpAcceptor::listen(options.tcp_addresses, options.connection_limits));
    }
    process::take_grpc_lines(log_grpc_line);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(grpc::ResourceQuota(program).SetMaxThreads(kThreadsMax));
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                               // A second server on the port must fail instead of receiving every other
                               // connection.
                               0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
    for (grpc::Service* service : services) {
        builder.RegisterService(service);
    }

    std::vector<std::pair<std::string, int>> bound;
    bound.reserve(options.unix_paths.size());  // gRPC keeps pointers to the ints
    for (const std::string& path : options.unix_paths) {
        std::error_code error;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
        bound.emplace_back(path, 0);
        builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials(), &bound.back().second);
    }
    using AcceptedFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> accepted;
    if (listening.tcp) {
        accepted = builder.experimental().AddExternalConnectionAcceptor(AcceptedFd::FROM_FD, tls);
    }
    std::optional<gid_t> group;
    if (!options.socket_group.empty()) {
        PENSTOCK_TRY(group, group_id(options.socket_group));
    }
    {
        const SocketMask mask;
        listening.server = builder.BuildAndStart();
    }
    for (const auto& [path, port] : bound) {
        if (port == 0) {  // gRPC stops at the first socket that it cannot bind
            return fail(Errc::Unavailable, "cannot listen on unix:" + path + ": " + why_not(path));
        }
    }
    if (listening.server == nullptr) {
        return fail(Errc::Unavailable, "the gRPC server did not start");
    }
    for (const std::string& path : options.unix_paths) {
        if (::chmod(path.c_str(), 0660) != 0 ||
            (group && ::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)) {
            return fail(Errc::PermissionDenied, path + ": cannot set mode or group: " + reason());
        }
    }
    if (listening.tcp) {
        listening.tcp->start([accepted](int listener, int connection) {
            grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
            parameters.listener_fd = listener;
            parameters.fd = connection;
            accepted->HandleNewConnection(&parameters);
        });
    }
    return listening;
}

void stop(Listening& listening) {
    if (listening.tcp != nullptr) {
        listening.tcp->stop();  // first: a stopped server would leave a new connection's descriptor open
    }
    if (listening.server != nullptr) {
        listening.server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
        listening.server.reset();
    }
    listening.tcp.reset();
}

}  // namespace penstock::rpc
