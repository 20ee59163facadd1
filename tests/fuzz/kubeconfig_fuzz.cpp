// SPDX-License-Identifier: Apache-2.0
// Any text as a kubeconfig. Reading terminates, and the result satisfies its invariants. A second file can
// add definitions, but never changes those of the first (AUTH-001).
#include <array>
#include <string>
#include <string_view>

#include "control/kube/client/kubeconfig.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::kube {
namespace {

void check_promises(const ClientConfig& config) {
    PENSTOCK_CHECK(config.server.starts_with("https://") || config.server.starts_with("http://"));
    PENSTOCK_CHECK(!config.server.ends_with('/'));
    PENSTOCK_CHECK(config.client_certificate.is_set() == config.client_key.is_set());
    PENSTOCK_CHECK(!(config.insecure_skip_tls_verify && config.ca.is_set()));
    for (const PemSource* source : {&config.ca, &config.client_certificate, &config.client_key}) {
        PENSTOCK_CHECK(source->data.is_empty() || source->file.empty());
        PENSTOCK_CHECK(source->file.empty() || source->file.is_absolute());
    }
    PENSTOCK_CHECK(config.token_file.empty() || config.token_file.is_absolute());
    if (config.exec) {
        PENSTOCK_CHECK(!config.exec->command.empty());
    }
}

}  // namespace
}  // namespace penstock::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock::kube;
    if (size > 64 * 1024) {
        return 0;
    }
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::array<KubeconfigText, 2> files = {
        KubeconfigText{.file = "/f/config", .text = text},
        KubeconfigText{
            .file = "/g/config",
            .text =
                "current-context: spare\ncontexts: [{name: spare, context: {cluster: spare, user: spare}}]\n"
                "clusters: [{name: spare, cluster: {server: https://spare}}]\nusers: [{name: spare, user: "
                "{token: t}}]\n"}};
    const auto alone = resolve_kubeconfig({files.data(), 1}, "");
    if (!alone) {
        PENSTOCK_CHECK(!alone.error().what.empty());
        return 0;
    }
    check_promises(*alone);
    const auto together = resolve_kubeconfig(files, "");
    PENSTOCK_CHECK(together && *together == *alone);
    return 0;
}
