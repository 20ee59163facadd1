// Who we are towards the API server, kept up to date: the token and the TLS material that the next request shall use.
//
//   token file     read again when it was replaced, when what was read is 60 s old, and after a 401 (AUTH-004)
//   CA, cert, key  read again when one of the files was replaced (AUTH-005); taken when all of them fit together, as a rotation writes them
//                  one after the other
//   exec plugin    run when there is no credential, it has expired, or a 401 came (AUTH-007)
//
// What cannot be read any more, is empty or broken leaves what was good in use, and is logged once. No text of this file holds a secret.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "control/kube/client_config.hpp"
#include "control/kube/exec_plugin.hpp"
#include "control/kube/file_text.hpp"
#include "control/kube/tls_material.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Two clocks, because a certificate's end is a time of day and an age is not.
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
    // Reads every file once: what is missing, malformed or does not fit together is an error here.
    [[nodiscard]] static Result<Credentials> open(const ClientConfig& config, const CredentialTimes& times,
                                                  Instant now);

    enum class State : uint8_t {
        Ready,
        Pending,  // the exec plugin is at work: ask again soon
        Failed,   // it failed; the next call starts it anew
    };
    // Brings up to date what is due. Reads files, never waits.
    State refresh(Instant now);
    // The server did not accept what it was sent.
    void rejected();

    // "": the request carries none.
    const Secret& token() const;
    // Another pointer exactly when the contents are others.
    const std::shared_ptr<const TlsMaterial>& tls() const { return tls_; }
    // Why refresh() said Failed.
    const std::string& failure() const { return failure_; }
    // `text` with every secret in it replaced: for words of others, such as a server's warnings (AUTH-009).
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
    std::string program_;  // the exec plugin's file

    TlsMaterial own_tls_;  // of the files
    std::shared_ptr<const TlsMaterial> tls_;
    std::array<FileStamp, 3> stamps_;  // of CA, certificate and key when they were read
    std::string tls_problem_;          // said already

    Secret token_;  // inline, or of the file
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
