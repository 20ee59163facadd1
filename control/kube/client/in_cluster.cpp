// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/in_cluster.hpp"

#include "control/kube/client/file_text.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::kube {
namespace {

Result<std::string> variable(const Environment& environment, const std::string& name) {
    const auto value = environment(name);
    if (!value || value->empty()) {
        return fail(Errc::NotFound,
                    "not inside a cluster: " + name + " is not set; outside a cluster pass --kubeconfig");
    }
    return *value;
}

// RFC 3986: an IPv6 address is written in brackets.
std::string bracketed(const std::string& host) {
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

Result<ClientConfig> in_cluster_config(const Environment& environment, const std::filesystem::path& folder) {
    PENSTOCK_TRY(const auto host, variable(environment, "KUBERNETES_SERVICE_HOST"));
    PENSTOCK_TRY(const auto port, variable(environment, "KUBERNETES_SERVICE_PORT"));
    ClientConfig config;
    config.origin = "in-cluster configuration";
    config.server = "https://" + bracketed(host) + ":" + port;
    config.token_file = folder / "token";
    config.ca.file = folder / "ca.crt";
    for (const auto& file : {config.token_file, config.ca.file}) {
        std::error_code ignored;
        if (!std::filesystem::exists(file, ignored)) {
            return fail(Errc::NotFound, config.origin + ": " + file.string() +
                                            " is missing (does the Pod have a ServiceAccount, and "
                                            "is automountServiceAccountToken not false?)");
        }
    }
    if (const auto own = read_file_text(folder / "namespace", kNamespaceBytesMax)) {
        config.namespace_name = trimmed(*own);
    }
    return config;
}

}  // namespace penstock::kube
