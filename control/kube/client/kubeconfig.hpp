// SPDX-License-Identifier: Apache-2.0
// kubeconfig files (AUTH-001, -002, -008): resolves one or several texts to the ClientConfig that a context
// selects.
//
// Only the entries that the context references are read: malformed entries of other contexts are ignored.
// Each mistake in a referenced entry is an error that names the file, the entry and the rule. No error quotes
// a value that could be a secret.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/client/client_config.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// getenv, or a substitute in tests.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct KubeconfigText {
    std::filesystem::path file;  // base folder of relative paths in the text
    std::string text;
};

// Pure. Merges like kubectl: the first definition of a cluster, user or context wins, and the first
// current-context. An empty `context` selects current-context.
[[nodiscard]] Result<ClientConfig> resolve_kubeconfig(std::span<const KubeconfigText> files,
                                                      std::string_view context);

// Reads the same from files, all of which must exist.
[[nodiscard]] Result<ClientConfig> read_kubeconfig(const std::vector<std::filesystem::path>& files,
                                                   std::string_view context);

}  // namespace penstock::kube
