#include "control/client/channel.hpp"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <fstream>
#include <sstream>
#include <string>

namespace penstock::client {
namespace {

Result<std::string> read_pem(const std::string& path, const char* option) {
    std::ifstream file(path);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf())) {
        return fail(Errc::NotFound, std::string(option) + ": " + path + " cannot be read");
    }
    return text.str();
}

Result<std::shared_ptr<grpc::ChannelCredentials>> credentials_for(const Target& target, const TlsFiles& tls) {
    if (target.is_unix()) {
        return grpc::InsecureChannelCredentials();
    }
    if (const Status complete = check_tls(target, tls); !complete) {
        return std::unexpected(complete.error());
    }
    auto certificate = read_pem(tls.certificate, "--tls-cert");
    auto key = read_pem(tls.key, "--tls-key");
    auto authority = read_pem(tls.authority, "--tls-ca");
    for (const auto* each : {&certificate, &key, &authority}) {
        if (!*each) {
            return std::unexpected(each->error());
        }
    }
    return grpc::SslCredentials({.pem_root_certs = *authority, .pem_private_key = *key, .pem_cert_chain = *certificate});
}

// Initializes gRPC once and never shuts it down. Without this the last channel to close also shuts the library down, and after a large
// write that waits up to ten seconds for a poller of gRPC's own (tcp_posix.cc, run_poller). The process's end frees what it holds.
void keep_grpc_initialized() {
    static const bool initialized = [] {
        grpc_init();
        return true;
    }();
    static_cast<void>(initialized);
}

}  // namespace

Result<std::shared_ptr<grpc::Channel>> open_channel(const Target& target, const TlsFiles& tls) {
    keep_grpc_initialized();
    const auto credentials = credentials_for(target, tls);
    if (!credentials) {
        return std::unexpected(credentials.error());
    }
    grpc::ChannelArguments arguments;
    // Without this every channel to one target shares a connection, and with it gRPC's own back-off of up to two minutes.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // A full state's answer, or a list of a million connections' services, outgrows gRPC's default of 4 MB.
    arguments.SetMaxReceiveMessageSize(-1);
    // gRPC honours http_proxy for TCP targets; a gateway is never behind one.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    return grpc::CreateCustomChannel(target.text, *credentials, arguments);
}

}  // namespace penstock::client
