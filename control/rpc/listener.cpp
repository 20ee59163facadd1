#include "control/rpc/listener.hpp"

#include <grp.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
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
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "control/log/log.hpp"
#include "control/rpc/state_message.hpp"

namespace penstock::rpc {
namespace {

// A control plane that vanished without a word must not look connected for the two hours that TCP would take to notice.
constexpr int kKeepaliveMs = 30'000;
// Each status or debug call has a thread while it runs, and a listing runs as long as its reader likes. Who may only read must not be able
// to take the threads of the process that moves packets by opening thousands and reading none: calls beyond this are RESOURCE_EXHAUSTED.
// State streams take no thread.
constexpr int kThreadsMax = 64;
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);

std::string reason() {
    return std::strerror(errno);
}

Result<std::string> read_file(const char* option, const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        return fail(Errc::Unavailable, std::string(option) + ": " + path + " cannot be read: " + reason());
    }
    return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<std::shared_ptr<grpc::ServerCredentials>> tls_credentials(const ServerOptions& options) {
    const auto cert = read_file("--tls-cert", options.tls_cert);
    const auto key = read_file("--tls-key", options.tls_key);
    const auto ca = read_file("--tls-client-ca", options.tls_client_ca);
    for (const auto* file : {&cert, &key, &ca}) {
        if (!*file) {
            return std::unexpected(file->error());
        }
    }
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = *ca;
    tls.pem_key_cert_pairs.push_back({*key, *cert});
    return grpc::SslServerCredentials(tls);
}

Result<gid_t> group_id(const std::string& name) {
    const struct group* entry = ::getgrnam(name.c_str());
    if (entry == nullptr) {
        return fail(Errc::NotFound, "--socket-group: there is no group " + name);
    }
    return entry->gr_gid;
}

// Once in the life of the process.
// The library is never shut down: where a client stopped reading while we wrote, its last shutdown waits ten seconds for a poller of its
// own (tcp_posix.cc, run_poller), and a gateway has two to stop in. What it holds ends with the process. Its own lines are for its
// developers; what an operator needs to know is said by us.
void set_up_grpc() {
    static std::once_flag once;
    std::call_once(once, [] {
        grpc_init();
        gpr_set_log_function([](gpr_log_func_args* line) {
            log::get("rpc").log(line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::debug : spdlog::level::trace, "grpc: {}",
                                line->message);
        });
    });
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
                                             std::span<grpc::Service* const> services) {
    set_up_grpc();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(grpc::ResourceQuota(program).SetMaxThreads(kThreadsMax));
    builder.SetMaxReceiveMessageSize(kMessageBytesMax);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server on the port must fail, not take every other call
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
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
    if (!options.tcp_addresses.empty()) {
        const auto credentials = tls_credentials(options);
        if (!credentials) {
            return std::unexpected(credentials.error());
        }
        for (const std::string& address : options.tcp_addresses) {
            bound.emplace_back(address, 0);
            builder.AddListeningPort(address, *credentials, &bound.back().second);
        }
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
            // gRPC stops at the first address that it cannot bind, and a broken certificate counts as one.
            if (port == 0) {
                return fail(Errc::Unavailable, "gRPC cannot listen on " + address +
                                                   (address.starts_with("unix:") ? "" : " (is the address in use, or a TLS file broken?)"));
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
