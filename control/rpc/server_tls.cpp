// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/server_tls.hpp"

#include <fcntl.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "control/log/line_budget.hpp"
#include "control/log/log.hpp"

namespace penstock::rpc {
namespace {

// Interval at which gRPC checks its copy of the files: the smallest that it accepts.
constexpr unsigned kGrpcLooksEveryS = 1;

// Key and certificate chain as one file in memory, which gRPC's file watcher reads through its path in /proc.
// gRPC must not read the real files: they are replaced one after the other, and a key beside the certificate
// of another key would leave the server without either. Each new pair is a new file that replaces the
// descriptor atomically.
class PairFile {
 public:
    ~PairFile() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    Status put(const tls::Material& material) {
        const int fresh = ::memfd_create("penstock-tls", MFD_CLOEXEC);
        if (fresh < 0) {
            return fail(Errc::Exhausted, std::string("memfd_create: ") + std::strerror(errno));
        }
        const std::string text = material.key_pem + "\n" + material.certificate_pem;
        std::string_view rest = text;
        while (!rest.empty()) {
            const ssize_t written = ::write(fresh, rest.data(), rest.size());
            if (written <= 0) {
                const int error = errno;
                ::close(fresh);
                return fail(Errc::Exhausted, std::string("memfd: ") + std::strerror(error));
            }
            rest.remove_prefix(static_cast<size_t>(written));
        }
        // gRPC reads key and chain one after the other. It starts again if the file's modification time, in
        // whole seconds, has changed meanwhile.
        const timespec time{.tv_sec = ++generation_, .tv_nsec = 0};
        const timespec times[] = {time, time};
        ::futimens(fresh, times);
        if (fd_ < 0) {
            fd_ = fresh;
        } else {
            ::dup3(fresh, fd_, O_CLOEXEC);
            ::close(fresh);
        }
        return {};
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
    int fd_ = -1;
    time_t generation_ = 0;
};

class Verifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
    explicit Verifier(const tls::Watch& watch) : watch_(watch) {}

    bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
                std::function<void(grpc::Status)>, grpc::Status* sync_status) override {
        // On the server side gRPC's "full chain" does not contain the client's own certificate.
        const auto leaf = request->peer_cert();
        const auto others = request->peer_cert_full_chain();
        const Status verified =
            verify_client(*watch_.current(), {leaf.data(), leaf.size()}, {others.data(), others.size()});
        if (verified) {
            *sync_status = grpc::Status::OK;
            return true;
        }
        if (const auto left_out = budget_.admit()) {
            log::get("rpc").warn(
                "client certificate refused: {}{}", verified.error().what,
                *left_out == 0 ? ""
                               : fmt::format(" ({} refusals before this one were not logged)", *left_out));
        }
        *sync_status =
            grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "certificate refused: " + verified.error().what);
        return true;
    }
    void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
    }  // all checks are synchronous

 private:
    const tls::Watch& watch_;
    log::LineBudget budget_;
};

}  // namespace

// Members are destroyed in reverse order: gRPC's objects before the watch that they use.
struct ServerTls::Impl {
    explicit Impl(tls::Files files)
        : watch({.files = std::move(files),
                 .names = {.authority = "--tls-client-ca"},
                 .on_change = [this](const tls::Material& material) {
                     put = pair.put(material);
                     if (!put) {
                         log::get("rpc").error("TLS files: {}", put.error().what);
                     }
                 }}) {}

    PairFile pair;
    Status put;  // result for the last material
    tls::Watch watch;
    std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider;
    std::shared_ptr<grpc::ServerCredentials> credentials;
};

ServerTls::ServerTls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ServerTls::~ServerTls() = default;

Result<std::unique_ptr<ServerTls>> ServerTls::start(tls::Files files) {
    auto impl = std::make_unique<Impl>(std::move(files));
    if (!impl->watch.current()) {
        return fail(Errc::InvalidArgument, impl->watch.error());
    }
    if (!impl->put) {
        return std::unexpected(impl->put.error());
    }
    using namespace grpc::experimental;
    impl->provider = std::make_shared<FileWatcherCertificateProvider>(impl->pair.path(), impl->pair.path(),
                                                                      kGrpcLooksEveryS);
    TlsServerCredentialsOptions options(impl->provider);
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);  // Verifier verifies
    options.set_certificate_verifier(ExternalCertificateVerifier::Create<Verifier>(impl->watch));
    impl->credentials = TlsServerCredentials(options);
    return std::unique_ptr<ServerTls>(new ServerTls(std::move(impl)));
}

std::shared_ptr<grpc::ServerCredentials> ServerTls::credentials() {
    return impl_->credentials;
}

tls::Watch& ServerTls::watch() {
    return impl_->watch;
}

}  // namespace penstock::rpc
