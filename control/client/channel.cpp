// SPDX-License-Identifier: Apache-2.0
#include "control/client/channel.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <string>

#include "control/process/grpc_lines.hpp"

namespace penstock::client {

Result<std::shared_ptr<grpc::Channel>> open_channel(const Target& target, const tls::Material* material,
                                                    int message_bytes_max) {
    process::keep_grpc_initialized();
    if (!target.is_unix() && material == nullptr) {
        return fail(Errc::InvalidArgument,
                    "gateway " + target.text + ": no certificates given for a TCP target");
    }
    const auto credentials = target.is_unix()
                                 ? grpc::InsecureChannelCredentials()
                                 : grpc::SslCredentials({.pem_root_certs = material->authority_pem,
                                                         .pem_private_key = material->key_pem,
                                                         .pem_cert_chain = material->certificate_pem});
    grpc::ChannelArguments arguments;
    // Without this all channels to one target share a connection, and gRPC's own back-off of up to two
    // minutes.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(message_bytes_max);
    // gRPC applies http_proxy to TCP targets; a gateway is never behind a proxy.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    return grpc::CreateCustomChannel(target.text, credentials, arguments);
}

}  // namespace penstock::client
