// The configuration of a Pod that talks to its own cluster: two environment variables and the files of its ServiceAccount (AUTH-003).
#pragma once

#include <filesystem>

#include "control/kube/client_config.hpp"
#include "control/kube/kubeconfig.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

inline constexpr const char* kServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

// NotFound where this is no Pod, or one without a ServiceAccount token.
[[nodiscard]] Result<ClientConfig> in_cluster_config(
    const Environment& environment = process_environment,
    const std::filesystem::path& folder = kServiceAccountFolder);

}  // namespace penstock::kube
