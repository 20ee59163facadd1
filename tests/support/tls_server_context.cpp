// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tls_server_context.hpp"

#include <openssl/pem.h>

#include <array>

#include "control/base/openssl_handles.hpp"
#include "dataplane/base/check.hpp"
#include "tests/support/fake_api_server.hpp"

namespace penstock::test {
namespace {

using openssl::Bio;
using openssl::Certificate;
using openssl::Key;
using openssl::reading;

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_length,
                    const unsigned char* offered, unsigned offered_length, void* protocols) {
    const auto& ours = *static_cast<const std::string*>(protocols);
    const int found = SSL_select_next_proto(const_cast<unsigned char**>(chosen), chosen_length,
                                            reinterpret_cast<const unsigned char*>(ours.data()),
                                            static_cast<unsigned>(ours.size()), offered, offered_length);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

TlsServerContext::TlsServerContext(const ServerTls& tls, std::vector<std::string> protocols)
    : protocols_(std::make_unique<std::string>()), context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX* context = context_.get();
    const Bio certificate_bio = reading(tls.certificate.certificate);
    const Certificate certificate(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
    const Bio key_bio = reading(tls.certificate.key);
    const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
    PENSTOCK_CHECK(SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
                   SSL_CTX_use_PrivateKey(context, key.get()) == 1);
    if (tls.version_max != 0) {
        SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(context, tls.version_max);
        SSL_CTX_set_security_level(context, 0);  // OpenSSL's default forbids old versions to servers too
    }
    if (!tls.client_ca.empty()) {
        const Bio ca_bio = reading(tls.client_ca);
        const Certificate ca(PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr));
        PENSTOCK_CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) == 1);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    for (const std::string& protocol : protocols) {
        *protocols_ += static_cast<char>(protocol.size());
        *protocols_ += protocol;
    }
    if (!protocols.empty()) {
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, protocols_.get());
    }
}

std::string peer_common_name(SSL* ssl) {
    const Certificate certificate(SSL_get1_peer_certificate(ssl));
    std::array<char, 256> name{};
    if (!certificate || X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName,
                                                  name.data(), static_cast<int>(name.size())) < 0) {
        return {};
    }
    return name.data();
}

}  // namespace penstock::test
