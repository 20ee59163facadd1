// How to reach an API server and who to be there, whether a kubeconfig (kubeconfig.hpp) or the Pod's own surroundings (in_cluster.hpp) said
// so. Files are named here and read later, again and again (credentials.hpp).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/secret.hpp"

namespace penstock::kube {

// PEM text from a file that may change, or as it was given. Data beats file (AUTH-001).
struct PemSource {
    Secret data;
    std::filesystem::path file;
    bool is_set() const { return !data.is_empty() || !file.empty(); }
    bool operator==(const PemSource&) const = default;
};

// A program that prints credentials (client.authentication.k8s.io, AUTH-007).
struct ExecConfig {
    std::string api_version;  // "client.authentication.k8s.io/v1" or ".../v1beta1"
    std::string command;      // absolute, or a name that PATH resolves
    std::vector<std::string> args;
    std::vector<std::pair<std::string, Secret>> env;  // added to ours
    std::string install_hint;
    bool provide_cluster_info = false;
    bool operator==(const ExecConfig&) const = default;
};

// Whom to act as (needs the right to impersonate).
struct Impersonation {
    std::string user;
    std::string uid;
    std::vector<std::string> groups;
    std::map<std::string, std::vector<std::string>> extra;
    bool operator==(const Impersonation&) const = default;
};

struct ClientConfig {
    std::string
        origin;  // for messages: "context prod of /etc/penstock/kubeconfig", "in-cluster configuration"
    std::string server;  // "https://10.0.0.1:6443", without a slash at its end; may hold a path
    PemSource ca;        // unset: the system's
    PemSource client_certificate;
    PemSource client_key;
    Secret token;
    std::filesystem::path token_file;  // beats `token` (AUTH-002)
    std::optional<ExecConfig> exec;    // asked where there is neither token nor token file
    std::string tls_server_name;       // "": the server's own
    bool insecure_skip_tls_verify = false;
    Secret proxy_url;  // may hold a password; "": the environment decides, as for kubectl
    Impersonation impersonate;
    std::string namespace_name;  // the context's, "" where it names none
    bool disable_compression = false;
    bool operator==(const ClientConfig&) const = default;
};

}  // namespace penstock::kube
