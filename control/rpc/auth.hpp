// SPDX-License-Identifier: Apache-2.0
// Authorization of RPC callers by transport. Callers on the Unix socket may do everything: access is limited
// by the socket's mode and group. Over TCP every client has a certificate signed by --tls-client-ca. Clients
// with a name listed in --tls-admin-names may configure and debug; the others may only read. A gateway
// follows the connections of another one with a certificate of its own name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace grpc {
class ServerContextBase;
}

namespace penstock::rpc {

// Identity of a caller, as known from its call.
struct Caller {
    bool by_unix_socket = false;
    std::vector<std::string>
        certificate_names;  // common name, then subject alternative names; verified by TLS
};
[[nodiscard]] Caller caller_of(const grpc::ServerContextBase& context);
// For logs: the names in the caller's certificate, or its address: "edge-admin (ipv4:192.0.2.7:40312)".
[[nodiscard]] std::string identity_of(const grpc::ServerContextBase& context);

class Authorizer {
 public:
    Authorizer() = default;  // refuses all callers over TCP
    explicit Authorizer(std::vector<std::string> admin_names) : admin_names_(std::move(admin_names)) {}

    // PermissionDenied if the caller has no verified name.
    [[nodiscard]] Status may_read(const Caller& caller) const;
    // PermissionDenied lists the names in the certificate and the option in which a name is missing.
    [[nodiscard]] Status may_configure(const Caller& caller) const;
    // Whether the caller is the gateway whose certificate has one of `names`. PermissionDenied lists both.
    [[nodiscard]] Status may_follow(const Caller& caller, const std::vector<std::string>& names) const;

 private:
    std::vector<std::string> admin_names_;
};

}  // namespace penstock::rpc
