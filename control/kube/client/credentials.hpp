// SPDX-License-Identifier: Apache-2.0
// Credentials for the API server, kept up to date: the token and the TLS material for the next request.
//
//   token file     read again if it was replaced, if the last read is 60 s old, and after a 401 (AUTH-004)
//   CA, cert, key  read again if one of the files was replaced (AUTH-005); used only if all of them match,
//                  because a rotation writes them one after the other
//   exec plugin    run if there is no credential, if it has expired, or after a 401 (AUTH-007)
//
// If a file becomes unreadable, empty or malformed, the last good credentials stay in use, and the problem is
// logged once. No message of this unit contains a secret.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "control/kube/client/client_config.hpp"
#include "control/kube/client/exec_plugin.hpp"
#include "control/kube/client/file_text.hpp"
#include "control/kube/client/tls_material.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Two clocks, because the expiry of a certificate is a time of day and an age is not.
struct Instant {
    std::chrono::steady_clock::time_point steady;
    std::chrono::system_clock::time_point wall;
    static Instant now() { return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()}; }
};

struct CredentialTimes {
    std::chrono::milliseconds token_age_max = std::chrono::seconds(60);
    std::chrono::milliseconds exec_limit = std::chrono::seconds(60);
};

class Credentials {
 public:
    // Reads every file once: missing, malformed or mismatched material is an error here.
    [[nodiscard]] static Result<Credentials> open(const ClientConfig& config, const CredentialTimes& times,
                                                  Instant now);

    enum class State : uint8_t {
        Ready,
        Pending,  // the exec plugin is running: call again soon
        Failed,   // the exec plugin failed; the next call starts it again
    };
    // Refreshes the credentials that are due. Reads files, never waits.
    State refresh(Instant now);
    // Call after the server rejected the credentials.
    void rejected();

    // "": the request carries no token.
    const Secret& token() const;
    // The pointer changes exactly when the contents change.
    const std::shared_ptr<const TlsMaterial>& tls() const { return tls_; }
    // Reason for the last State::Failed of refresh().
    const std::string& failure() const { return failure_; }
    // Returns `text` with every secret replaced. For text from outside, such as warnings of a server
    // (AUTH-009).
    std::string without_secrets(std::string text) const;

 private:
    Credentials(ClientConfig config, const CredentialTimes& times)
        : config_(std::move(config)), times_(times) {}
    Result<TlsMaterial> read_tls() const;
    Status read_token(Instant now);
    std::array<FileStamp, 3> stamps_now() const;
    void refresh_tls();
    void use_tls();
    void refresh_token(Instant now);
    State refresh_exec(Instant now);
    bool uses_exec() const;
    static void keep_old(std::string& known_problem, const Status& status, const char* what);

    ClientConfig config_;
    CredentialTimes times_;
    std::string program_;  // path of the exec plugin

    TlsMaterial own_tls_;  // from the files
    std::shared_ptr<const TlsMaterial> tls_;
    std::array<FileStamp, 3> stamps_;  // of CA, certificate and key at the last read
    std::string tls_problem_;          // already logged

    Secret token_;  // inline, or from the file
    FileStamp token_stamp_;
    std::chrono::steady_clock::time_point token_read_at_;
    bool is_token_due_ = false;
    std::string token_problem_;

    std::optional<ExecCredential> credential_;
    std::optional<ExecRun> run_;
    std::chrono::steady_clock::time_point run_ends_at_;
    std::string failure_;
};

}  // namespace penstock::kube
