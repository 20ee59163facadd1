// SPDX-License-Identifier: Apache-2.0
// Address of an API server and the identity to use there, from a kubeconfig (kubeconfig.hpp) or from the
// environment of the Pod (in_cluster.hpp). Files are only named here; they are read later, repeatedly
// (credentials.hpp).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/client/secret.hpp"

namespace penstock::kube {

// PEM text, inline or from a file that may change. Inline data takes precedence over the file (AUTH-001).
struct PemSource {
    Secret data;
    std::filesystem::path file;
    bool is_set() const { return !data.is_empty() || !file.empty(); }
    bool operator==(const PemSource&) const = default;
};

// A program that prints credentials (client.authentication.k8s.io, AUTH-007).
struct ExecConfig {
    std::string api_version;  // "client.authentication.k8s.io/v1" or ".../v1beta1"
    std::string command;      // absolute, or a name that is resolved with PATH
    std::vector<std::string> args;
    std::vector<std::pair<std::string, Secret>> env;  // added to the environment of this process
    std::string install_hint;
    bool provide_cluster_info = false;
    bool operator==(const ExecConfig&) const = default;
};

// Identity to impersonate (requires the `impersonate` right).
struct Impersonation {
    std::string user;
    std::string uid;
    std::vector<std::string> groups;
    std::map<std::string, std::vector<std::string>> extra;
    bool operator==(const Impersonation&) const = default;
};

struct ClientConfig {
    // For messages: "context prod of /etc/penstock/kubeconfig", "in-cluster configuration".
    std::string origin;
    std::string server;  // "https://10.0.0.1:6443", without a trailing slash; may contain a path
    PemSource ca;        // unset: the system CAs
    PemSource client_certificate;
    PemSource client_key;
    Secret token;
    std::filesystem::path token_file;  // takes precedence over `token` (AUTH-002)
    std::optional<ExecConfig> exec;    // used if there is neither token nor token file
    std::string tls_server_name;       // "": the host name of the server
    bool insecure_skip_tls_verify = false;
    Secret proxy_url;  // may contain a password; "": from the environment, as in kubectl
    Impersonation impersonate;
    std::string namespace_name;  // of the context; "" if the context sets none
    bool disable_compression = false;
    bool operator==(const ClientConfig&) const = default;
};

}  // namespace penstock::kube
