// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/auth.hpp"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <algorithm>

namespace penstock::rpc {
namespace {

std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

}  // namespace

Caller caller_of(const grpc::ServerContextBase& context) {
    Caller caller;
    caller.by_unix_socket = context.peer().starts_with("unix:");
    const auto auth = context.auth_context();
    if (auth != nullptr && auth->IsPeerAuthenticated()) {
        for (const char* property : {"x509_common_name", "x509_subject_alternative_name"}) {
            for (const auto& name : auth->FindPropertyValues(property)) {
                caller.certificate_names.emplace_back(name.data(), name.size());
            }
        }
    }
    return caller;
}

std::string identity_of(const grpc::ServerContextBase& context) {
    const std::string names = listed(caller_of(context).certificate_names);
    return names.empty() ? context.peer() : names + " (" + context.peer() + ")";
}

Status Authorizer::may_read(const Caller& caller) const {
    if (caller.by_unix_socket || !caller.certificate_names.empty()) {
        return {};
    }
    return fail(Errc::PermissionDenied, "the client's certificate contains no name");
}

Status Authorizer::may_configure(const Caller& caller) const {
    const auto is_admin = [&](const std::string& name) {
        return std::ranges::find(admin_names_, name) != admin_names_.end();
    };
    if (caller.by_unix_socket || std::ranges::any_of(caller.certificate_names, is_admin)) {
        return {};
    }
    const std::string names = listed(caller.certificate_names);
    return fail(
        Errc::PermissionDenied,
        "permission denied: configuring and debugging require a certificate name listed in the gateway's "
        "--tls-admin-names; this client is " +
            (names.empty() ? "nameless" : names));
}

Status Authorizer::may_follow(const Caller& caller, const std::vector<std::string>& names) const {
    const auto is_expected = [&](const std::string& name) {
        return std::ranges::find(names, name) != names.end();
    };
    if (caller.by_unix_socket || std::ranges::any_of(caller.certificate_names, is_expected)) {
        return {};
    }
    return fail(
        Errc::PermissionDenied,
        "permission denied: a gateway follows connections with a certificate that has its name or the "
        "host of its address in the plan of shares (" +
            listed(names) + "); the names of this one are " + listed(caller.certificate_names));
}

}  // namespace penstock::rpc
