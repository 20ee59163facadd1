// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/credentials.hpp"

#include <cstdlib>

#include "control/log/log.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::kube {
namespace {

// Checks that a header can carry the token: a line break in a token would start another header.
Status check_token(const std::string& token) {
    if (token.empty()) {
        return fail(Errc::InvalidArgument, "is empty");
    }
    for (const char c : token) {
        if (c <= ' ' || c > '~') {
            return fail(Errc::InvalidArgument, "contains characters that are not allowed in a token");
        }
    }
    return {};
}

Result<std::string> pem_of(const PemSource& source) {
    return source.file.empty() ? Result<std::string>(source.data.reveal()) : read_file_text(source.file);
}

void replace_all(std::string& text, const std::string& secret) {
    // Shorter texts are not secrets, and replacing them would damage ordinary words.
    constexpr size_t kSecretBytesMin = 6;
    if (secret.size() < kSecretBytesMin) {
        return;
    }
    for (size_t at = 0; (at = text.find(secret, at)) != std::string::npos;) {
        text.replace(at, secret.size(), "***");
    }
}

}  // namespace

Result<Credentials> Credentials::open(const ClientConfig& config, const CredentialTimes& times, Instant now) {
    Credentials credentials(config, times);
    credentials.stamps_ = credentials.stamps_now();
    PENSTOCK_TRY_IN(config.origin, credentials.own_tls_, credentials.read_tls());
    credentials.tls_ = std::make_shared<const TlsMaterial>(credentials.own_tls_);
    credentials.token_ = config.token;
    if (!config.token_file.empty()) {
        credentials.token_stamp_ = stamp_of(config.token_file);
        PENSTOCK_TRY_STATUS_IN(config.origin, credentials.read_token(now));
    } else if (!config.token.is_empty()) {
        PENSTOCK_TRY_STATUS_IN(config.origin + ": token", check_token(config.token.reveal()));
    }
    if (credentials.uses_exec()) {
        const char* path = std::getenv("PATH");
        PENSTOCK_TRY_IN(config.origin, credentials.program_,
                        find_program(*config.exec, path == nullptr ? "" : path));
    }
    return credentials;
}

bool Credentials::uses_exec() const {
    return config_.exec && config_.token_file.empty() && config_.token.is_empty();
}

std::array<FileStamp, 3> Credentials::stamps_now() const {
    std::array<FileStamp, 3> stamps;
    const PemSource* sources[] = {&config_.ca, &config_.client_certificate, &config_.client_key};
    for (size_t i = 0; i < stamps.size(); ++i) {
        stamps[i] = sources[i]->file.empty() ? FileStamp{} : stamp_of(sources[i]->file);
    }
    return stamps;
}

Result<TlsMaterial> Credentials::read_tls() const {
    TlsMaterial material;
    if (config_.ca.is_set()) {
        PENSTOCK_TRY_IN("CA", auto ca, pem_of(config_.ca));
        if (const Status checked = check_ca(ca); !checked) {
            return config_.ca.file.empty() ? std::unexpected(checked.error())
                                           : in_context(config_.ca.file.string(), checked.error());
        }
        material.ca = std::move(ca);
    }
    if (config_.client_certificate.is_set()) {
        PENSTOCK_TRY_IN("client certificate", auto certificate, pem_of(config_.client_certificate));
        PENSTOCK_TRY_IN("client key", auto key, pem_of(config_.client_key));
        material.certificate = std::move(certificate);
        material.key = Secret(std::move(key));
        PENSTOCK_TRY_STATUS(check_pair(material.certificate, material.key));
    }
    return material;
}

Status Credentials::read_token(Instant now) {
    token_read_at_ = now.steady;
    auto text = read_file_text(config_.token_file);
    if (!text) {
        return fail(text.error().code, "token file " + text.error().what);
    }
    Secret token(std::string(trimmed(*text)));
    PENSTOCK_TRY_STATUS_IN("token file " + config_.token_file.string(), check_token(token.reveal()));
    token_ = std::move(token);
    return {};
}

// Logs a failure once, and its end once.
void Credentials::keep_old(std::string& known_problem, const Status& status, const char* what) {
    const std::string problem = status ? "" : status.error().what;
    if (problem == known_problem) {
        return;
    }
    if (problem.empty()) {
        log::get("kube").info("{} is valid again", what);
    } else {
        log::get("kube").warn("{}; the previous {} stays in use", problem, what);
    }
    known_problem = problem;
}

void Credentials::refresh_tls() {
    // Stamps are taken before reading: a write in between then counts as a change at the next refresh.
    const auto stamps = stamps_now();
    if (stamps == stamps_ && tls_problem_.empty()) {
        return;
    }
    stamps_ = stamps;
    auto material = read_tls();
    keep_old(tls_problem_, material ? Status{} : std::unexpected(material.error()),
             "CA or client certificate");
    if (material && *material != own_tls_) {
        log::get("kube").info("CA or client certificate has changed; new connections use it");
        own_tls_ = std::move(*material);
        use_tls();
    }
}

void Credentials::refresh_token(Instant now) {
    if (config_.token_file.empty()) {
        return;
    }
    const FileStamp stamp = stamp_of(config_.token_file);
    if (stamp == token_stamp_ && !is_token_due_ && now.steady - token_read_at_ < times_.token_age_max) {
        return;
    }
    token_stamp_ = stamp;
    is_token_due_ = false;
    keep_old(token_problem_, read_token(now), "token");
}

// Combines the plugin's certificate, if it returned one, with the CAs from the files.
void Credentials::use_tls() {
    TlsMaterial material = own_tls_;
    if (credential_ && !credential_->certificate.empty()) {
        material.certificate = credential_->certificate;
        material.key = credential_->key;
    }
    if (material != *tls_) {
        tls_ = std::make_shared<const TlsMaterial>(std::move(material));
    }
}

Credentials::State Credentials::refresh_exec(Instant now) {
    if (!uses_exec()) {
        return State::Ready;
    }
    if (!run_) {
        if (credential_ && (!credential_->expires_at || now.wall < *credential_->expires_at)) {
            return State::Ready;
        }
        auto started = ExecRun::start(program_, *config_.exec, exec_info(config_, own_tls_.ca));
        if (!started) {
            failure_ = started.error().what;
            return State::Failed;
        }
        run_.emplace(std::move(*started));
        run_ends_at_ = now.steady + times_.exec_limit;
    }
    auto printed = run_->step();
    if (!printed && now.steady < run_ends_at_) {
        return State::Pending;
    }
    run_.reset();
    const std::string name = "exec plugin " + config_.exec->command;
    if (!printed) {
        failure_ = name + ": did not exit within " + std::to_string(times_.exec_limit.count() / 1000) + " s";
        return State::Failed;
    }
    if (!*printed) {
        failure_ = without_secrets(printed->error().what);
        return State::Failed;
    }
    auto credential = parse_exec_credential(**printed, config_.exec->api_version);
    if (credential && !credential->token.is_empty()) {
        if (const Status token = check_token(credential->token.reveal()); !token) {
            credential = in_context("its token", token.error());
        }
    }
    if (!credential) {
        failure_ = name + ": " + credential.error().what;
        return State::Failed;
    }
    if (credential->expires_at && *credential->expires_at <= now.wall) {
        failure_ = name + ": returned an expired credential";
        return State::Failed;
    }
    credential_ = std::move(*credential);
    use_tls();
    return State::Ready;
}

Credentials::State Credentials::refresh(Instant now) {
    refresh_tls();
    refresh_token(now);
    return refresh_exec(now);
}

void Credentials::rejected() {
    is_token_due_ = true;
    credential_.reset();
    stamps_ = {};
}

const Secret& Credentials::token() const {
    return credential_ ? credential_->token : token_;
}

std::string Credentials::without_secrets(std::string text) const {
    replace_all(text, token_.reveal());
    replace_all(text, token().reveal());
    replace_all(text, config_.proxy_url.reveal());
    if (config_.exec) {
        for (const auto& [name, value] : config_.exec->env) {
            replace_all(text, value.reveal());
        }
    }
    return text;
}

}  // namespace penstock::kube
