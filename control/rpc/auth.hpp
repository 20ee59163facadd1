// Who may do what, by how they came in. Whoever may open the Unix socket may do everything: its mode and group are the lock. Over TCP every
// client has a certificate that --tls-client-ca signed; those with a name listed in --tls-admin-names may configure and debug, the others
// only read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace grpc {
class ServerContextBase;
}

namespace penstock::rpc {

// What a call tells about its caller.
struct Caller {
    bool by_unix_socket = false;
    std::vector<std::string>
        certificate_names;  // common name, then subject alternative names; verified by TLS
};
[[nodiscard]] Caller caller_of(const grpc::ServerContextBase& context);

class Authorizer {
 public:
    Authorizer() = default;  // nobody over TCP
    explicit Authorizer(std::vector<std::string> admin_names) : admin_names_(std::move(admin_names)) {}

    // PermissionDenied where the caller is nobody we know.
    [[nodiscard]] Status may_read(const Caller& caller) const;
    // PermissionDenied says which names the certificate has and where a name is missing.
    [[nodiscard]] Status may_configure(const Caller& caller) const;

 private:
    std::vector<std::string> admin_names_;
};

}  // namespace penstock::rpc
