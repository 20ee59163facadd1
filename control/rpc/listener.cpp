#include "control/rpc/listener.hpp"

#include <grp.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <netdb.h>
#include <sys/socket.h>
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

// A control plane that vanished without a word must not look connected for the two hours that TCP would take to notice.
constexpr int kKeepaliveMs = 30'000;
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);

std::string reason() {
    return std::strerror(errno);
}

Result<gid_t> group_id(const std::string& name) {
    const struct group* entry = ::getgrnam(name.c_str());
    if (entry == nullptr) {
        return fail(Errc::NotFound, "--socket-group: there is no group " + name);
    }
    return entry->gr_gid;
}

// The library is never shut down: where a client stopped reading while we wrote, its last shutdown waits ten seconds for a poller of its
// own (tcp_posix.cc, run_poller), and a gateway has two to stop in. What it holds ends with the process. Its own lines are for its
// developers; what an operator needs to know is logged here. Handshakes that fail before a certificate is there are the exception: a
// client without one, or a port scanner.
void log_grpc_line(bool is_error, std::string_view text) {
    constexpr std::string_view kHandshake = "Handshake failed with fatal error";
    if (text.starts_with(kHandshake)) {
        const size_t reason = text.rfind("::");
        log::get("rpc").warn("a TLS handshake failed: {}",
                             reason == std::string_view::npos ? text : text.substr(reason + 2, text.find_last_not_of('.') - reason - 1));
        return;
    }
    log::get("rpc").log(is_error ? spdlog::level::debug : spdlog::level::trace, "grpc: {}", text);
}

// gRPC does not report why it cannot bind an address, so the reason is found by trying the same.
std::string why_not(const std::string& address) {
    if (address.starts_with("unix:")) {
        std::error_code error;
        const std::filesystem::path path = address.substr(5);
        const auto status = std::filesystem::symlink_status(path, error);
        if (std::filesystem::exists(status) && !std::filesystem::is_socket(status)) {
            return "there is a " + std::string(std::filesystem::is_directory(status) ? "folder" : "file") +
                   " of that name, which is no socket";
        }
        return ::access(path.parent_path().c_str(), W_OK | X_OK) == 0 ? "the socket cannot be made" : reason();
    }
    const size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') {
        host = host.substr(1, host.size() - 2);
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* list = nullptr;
    if (const int error = ::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &list); error != 0) {
        return ::gai_strerror(error);
    }
    const int fd = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool bound = fd >= 0 && ::bind(fd, list->ai_addr, list->ai_addrlen) == 0 && ::listen(fd, 1) == 0;
    std::string why = bound ? "gRPC refused it" : reason();
    ::freeaddrinfo(list);
    if (fd >= 0) {
        ::close(fd);
    }
    return why;
}

// Sockets are made with this mask, so that there is no moment at which everybody could connect.
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

Result<std::unique_ptr<grpc::Server>> listen(const ServerOptions& options, const std::string& program,
                                             std::span<grpc::Service* const> services,
                                             const std::shared_ptr<grpc::ServerCredentials>& tls) {
    process::take_grpc_lines(log_grpc_line);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(grpc::ResourceQuota(program).SetMaxThreads(kThreadsMax));
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server on the port must fail, not take every other call
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
    for (grpc::Service* service : services) {
        builder.RegisterService(service);
    }

    std::vector<std::pair<std::string, int>> bound;
    bound.reserve(options.unix_paths.size() + options.tcp_addresses.size());  // gRPC keeps pointers to the ints
    for (const std::string& path : options.unix_paths) {
        std::error_code error;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
        bound.emplace_back("unix:" + path, 0);
        builder.AddListeningPort(bound.back().first, grpc::InsecureServerCredentials(), &bound.back().second);
    }
    for (const std::string& address : options.tcp_addresses) {
        bound.emplace_back(address, 0);
        builder.AddListeningPort(address, tls, &bound.back().second);
    }
    std::optional<gid_t> group;
    if (!options.socket_group.empty()) {
        const auto id = group_id(options.socket_group);
        if (!id) {
            return std::unexpected(id.error());
        }
        group = *id;
    }
    std::unique_ptr<grpc::Server> server;
    {
        const SocketMask mask;
        server = builder.BuildAndStart();
    }
    for (const auto& [address, port] : bound) {
        if (server == nullptr || port == 0) {
            // gRPC stops at the first address that it cannot bind.
            if (port == 0) {
                return fail(Errc::Unavailable, "gRPC cannot listen on " + address + ": " + why_not(address));
            }
        }
    }
    if (server == nullptr) {
        return fail(Errc::Unavailable, "the gRPC server did not start");
    }
    for (const std::string& path : options.unix_paths) {
        if (::chmod(path.c_str(), 0660) != 0 || (group && ::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)) {
            return fail(Errc::PermissionDenied, path + ": mode or group cannot be set: " + reason());
        }
    }
    return server;
}

void stop(std::unique_ptr<grpc::Server>& server) {
    if (server != nullptr) {
        server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
        server.reset();
    }
}

}  // namespace penstock::rpc
