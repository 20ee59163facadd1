// SPDX-License-Identifier: Apache-2.0
// Exec plugins (AUTH-007): a user-chosen program prints an ExecCredential, whose token or certificate is used
// until it expires. The program runs without a shell, in its own process group, with only its three standard
// descriptors open. Nothing waits for it: step() polls its progress.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/client/client_config.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct ExecCredential {
    Secret token;
    std::string certificate;  // PEM, validated against its key; "": none
    Secret key;
    // unset: valid until the server responds with 401
    std::optional<std::chrono::system_clock::time_point> expires_at;
};

// Parses the output of the plugin. Pure; errors never quote it.
[[nodiscard]] Result<ExecCredential> parse_exec_credential(std::string_view json,
                                                           std::string_view api_version);

// KUBERNETES_EXEC_INFO, the input of the plugin. `ca` is the PEM text, for plugins configured to receive the
// cluster data.
[[nodiscard]] std::string exec_info(const ClientConfig& config, const std::string& ca);

// Path of the program, resolved with PATH; NotFound with the install hint of the stanza.
[[nodiscard]] Result<std::string> find_program(const ExecConfig& exec, const std::string& path_variable);

// RFC 3339, as Kubernetes formats times; nullopt for anything else.
[[nodiscard]] std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text);

class ExecRun {
 public:
    // Environment: that of this process, the stanza's entries, and KUBERNETES_EXEC_INFO.
    [[nodiscard]] static Result<ExecRun> start(const std::string& program, const ExecConfig& exec,
                                               const std::string& info);
    ExecRun(ExecRun&& other) noexcept;
    ExecRun& operator=(ExecRun&&) = delete;
    // Kills the program if it is still running.
    ~ExecRun();

    // The output, after the program has exited with 0. nullopt: still running. Must not be called again after
    // a result.
    std::optional<Result<std::string>> step();

 private:
    ExecRun(std::string name, pid_t pid, int output, int errors);
    bool drain(int descriptor, std::string& text, size_t bytes_max);

    std::string name_;
    pid_t pid_;  // 0: reaped, or moved from
    int output_descriptor_;
    int error_descriptor_;
    std::string output_;
    std::string errors_;
};

}  // namespace penstock::kube
