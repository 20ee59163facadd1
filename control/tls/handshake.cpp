// SPDX-License-Identifier: Apache-2.0
#include "control/tls/handshake.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "control/base/host_port.hpp"
#include "control/base/openssl_handles.hpp"

namespace penstock::tls {
namespace {

using Context = std::unique_ptr<SSL_CTX, openssl::Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, openssl::Freed<SSL_free>>;
using Addresses = std::unique_ptr<addrinfo, openssl::Freed<freeaddrinfo>>;

class Socket {
 public:
    explicit Socket(int fd) noexcept : fd_(fd) {}
    ~Socket() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
    int fd_;
};

int connected(const std::string& host, const std::string& port, std::chrono::milliseconds limit) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0) {
        return -1;
    }
    const Addresses addresses(list);
    const int fd = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval time{.tv_sec = limit.count() / 1000, .tv_usec = (limit.count() % 1000) * 1000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);  // also bounds connect()
    if (fd >= 0 && ::connect(fd, list->ai_addr, list->ai_addrlen) != 0) {
        ::close(fd);
        return -1;
    }
    return fd;
}

// A context with the own certificate and the accepted CAs of the peer.
Context context_of(const Material& material) {
    Context context(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context.get(), kHttp2.data(), kHttp2.size());
    const openssl::Bio chain = openssl::reading(material.certificate_pem);
    if (const openssl::Certificate leaf{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)}) {
        SSL_CTX_use_certificate(context.get(), leaf.get());
    }
    while (X509* const next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
        SSL_CTX_add0_chain_cert(context.get(), next);
    }
    const openssl::Bio key_bio = openssl::reading(material.key_pem);
    if (const openssl::Key key{PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr)}) {
        SSL_CTX_use_PrivateKey(context.get(), key.get());
    }
    const openssl::Bio authorities = openssl::reading(material.authority_pem);
    while (const openssl::Certificate authority{
        PEM_read_bio_X509(authorities.get(), nullptr, nullptr, nullptr)}) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
    }
    ERR_clear_error();
    return context;
}

// The last part of OpenSSL's newest error, "tlsv1 alert unknown ca"; removes all errors from the queue.
std::string last_error() {
    const unsigned long code = ERR_peek_last_error();
    const char* const reason = ERR_reason_error_string(code);
    std::string text = reason != nullptr ? reason : "";
    ERR_clear_error();
    return text;
}

}  // namespace

std::optional<std::string> handshake_trouble(const std::string& target, const Material& material,
                                             std::chrono::milliseconds limit) {
    const HostPort where = split_host_port(target);
    const Socket socket(connected(where.host, where.port, limit));
    if (socket.fd() < 0) {
        return std::nullopt;
    }
    const Context context = context_of(material);
    const Session session(SSL_new(context.get()));
    in6_addr address{};
    if (::inet_pton(AF_INET, where.host.c_str(), &address) == 1 ||
        ::inet_pton(AF_INET6, where.host.c_str(), &address) == 1) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), where.host.c_str());
    } else {
        SSL_set1_host(session.get(), where.host.c_str());
        SSL_set_tlsext_host_name(session.get(), where.host.c_str());
    }
    SSL_set_fd(session.get(), socket.fd());
    ERR_clear_error();
    if (SSL_connect(session.get()) != 1) {
        const long verified = SSL_get_verify_result(session.get());
        const std::string error = last_error();
        if (verified != X509_V_OK) {
            return "certificate refused: the gateway's certificate is not accepted by the CA given here: " +
                   std::string(X509_verify_cert_error_string(verified));
        }
        return error.empty() ? std::nullopt : std::optional("TLS handshake failed: " + error);
    }
    // A server that accepts the client certificate sends HTTP/2 settings at once. A server that refuses it
    // closes the connection, with or without an alert.
    char byte = 0;
    const int got = SSL_read(session.get(), &byte, 1);
    const int why = SSL_get_error(session.get(), got);
    const std::string error = last_error();
    const bool timed_out = why == SSL_ERROR_WANT_READ;
    if (got == 1 || timed_out) {
        return std::nullopt;
    }
    return "certificate refused by the gateway: ours is " + material.subject +
           (error.empty() ? "" : " (" + error + ")") + "; the gateway's log has the reason";
}

}  // namespace penstock::tls
