// Exec plugins (AUTH-007): a program of the user's choice prints an ExecCredential, and its token or certificate is ours until it expires.
// It runs without a shell, in a process group of its own, with nothing open but its three descriptors, and it is never waited for: step()
// looks at how far it is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/client_config.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct ExecCredential {
    Secret token;
    std::string certificate;  // PEM, checked against its key; "": none
    Secret key;
    std::optional<std::chrono::system_clock::time_point> expires_at;  // unset: until the server says 401
};

// What the plugin printed. Pure; errors never quote it.
[[nodiscard]] Result<ExecCredential> parse_exec_credential(std::string_view json,
                                                           std::string_view api_version);

// KUBERNETES_EXEC_INFO: what the plugin is told. `ca` is the PEM text, for plugins that asked for the cluster's data.
[[nodiscard]] std::string exec_info(const ClientConfig& config, const std::string& ca);

// The program's file, as PATH finds it; NotFound with the stanza's install hint.
[[nodiscard]] Result<std::string> find_program(const ExecConfig& exec, const std::string& path_variable);

// RFC 3339, as Kubernetes writes times; nullopt for anything else.
[[nodiscard]] std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text);

class ExecRun {
 public:
    // Our environment and the stanza's, and KUBERNETES_EXEC_INFO.
    [[nodiscard]] static Result<ExecRun> start(const std::string& program, const ExecConfig& exec,
                                               const std::string& info);
    ExecRun(ExecRun&& other) noexcept;
    ExecRun& operator=(ExecRun&&) = delete;
    // Kills what still runs.
    ~ExecRun();

    // What it printed, once it has ended with 0. nullopt: it still runs. After a result it must not be asked again.
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
