// SPDX-License-Identifier: Apache-2.0
// Configuration of a Pod that connects to its own cluster: two environment variables and the files of its
// ServiceAccount (AUTH-003).
#pragma once

#include <filesystem>

#include "control/kube/client/client_config.hpp"
#include "control/kube/client/kubeconfig.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

inline constexpr const char* kServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

// NotFound if this process does not run in a Pod, or in one without a ServiceAccount token.
[[nodiscard]] Result<ClientConfig> in_cluster_config(
    const Environment& environment = process_environment,
    const std::filesystem::path& folder = kServiceAccountFolder);

}  // namespace penstock::kube
