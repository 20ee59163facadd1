// kubeconfig files (AUTH-001, -002, -008): from one or several texts to the one ClientConfig that a context chooses.
//
// Only what the context leads to is looked at: another user's broken stanza is none of our business. Each mistake in what is looked at is
// an error that names the file, the entry and the rule; no error quotes a value that could be a secret.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/client_config.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// getenv, or a test's.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct KubeconfigText {
    std::filesystem::path file;  // relative paths inside are relative to its folder
    std::string text;
};

// Pure. As kubectl merges: the first definition of a cluster, user or context wins, and the first current-context. `context` "" means that
// one.
[[nodiscard]] Result<ClientConfig> resolve_kubeconfig(std::span<const KubeconfigText> files,
                                                      std::string_view context);

// The same from files, all of which must be there.
[[nodiscard]] Result<ClientConfig> read_kubeconfig(const std::vector<std::filesystem::path>& files,
                                                   std::string_view context);

}  // namespace penstock::kube
