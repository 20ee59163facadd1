// SPDX-License-Identifier: Apache-2.0
#include "tests/support/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <atomic>

#include "control/base/openssl_handles.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::test {
namespace {

using openssl::Bio;
using openssl::Certificate;
using openssl::Extension;
using openssl::Key;

constexpr long kHour = 3600;

std::string text_of(const Bio& bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<size_t>(size)};
}

std::string pem_of(const Key& key) {
    const Bio bio(BIO_new(BIO_s_mem()));
    PENSTOCK_CHECK(
        PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
    return text_of(bio);
}

std::string pem_of(const Certificate& certificate) {
    const Bio bio(BIO_new(BIO_s_mem()));
    PENSTOCK_CHECK(PEM_write_bio_X509(bio.get(), certificate.get()) == 1);
    return text_of(bio);
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    PENSTOCK_CHECK(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
    PENSTOCK_CHECK(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                              reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1,
                                              0) == 1);
}

// All fields except issuer and signature.
Certificate unsigned_certificate(const Key& key, bool is_expired, int days = 1) {
    static std::atomic<long> serial{1};
    Certificate certificate(X509_new());
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), is_expired ? -2 * kHour : -kHour);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), is_expired ? -kHour : days * 24 * kHour);
    X509_set_pubkey(certificate.get(), key.get());
    return certificate;
}

std::string alternative_names(const CertificateRequest& request) {
    std::string names;
    for (const std::string& name : request.dns_names) {
        names += (names.empty() ? "DNS:" : ",DNS:") + name;
    }
    for (const std::string& address : request.addresses) {
        names += (names.empty() ? "IP:" : ",IP:") + address;
    }
    return names;
}

}  // namespace

struct CertificateAuthority::State {
    Key key{EVP_EC_gen("P-256")};
    Certificate certificate;
    std::string pem;
};

CertificateAuthority::CertificateAuthority(const std::string& name) : state_(std::make_unique<State>()) {
    state_->certificate = unsigned_certificate(state_->key, false);
    X509* certificate = state_->certificate.get();
    add_name(X509_get_subject_name(certificate), "CN", name);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
    PENSTOCK_CHECK(X509_sign(certificate, state_->key.get(), EVP_sha256()) > 0);
    state_->pem = pem_of(state_->certificate);
}
CertificateAuthority::~CertificateAuthority() = default;
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;

const std::string& CertificateAuthority::pem() const {
    return state_->pem;
}

Issued CertificateAuthority::issue(const CertificateRequest& request) const {
    const Key key(request.is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"));
    const Certificate certificate = unsigned_certificate(key, request.is_expired, request.days);
    X509_NAME* subject = X509_get_subject_name(certificate.get());
    for (const std::string& organization : request.organizations) {
        add_name(subject, "O", organization);
    }
    add_name(subject, "CN", request.common_name);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(state_->certificate.get()));
    if (const std::string names = alternative_names(request); !names.empty()) {
        add_extension(certificate.get(), state_->certificate.get(), NID_subject_alt_name, names);
    }
    PENSTOCK_CHECK(X509_sign(certificate.get(), state_->key.get(), EVP_sha256()) > 0);
    return {.certificate = pem_of(certificate), .key = pem_of(key)};
}

Issued CertificateAuthority::issue_loopback() const {
    return issue({.dns_names = {"localhost"}, .addresses = {"127.0.0.1"}});
}

std::string encrypted_key(const std::string& key_pem, const std::string& password) {
    const Bio in(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
    const Key key(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
    const Bio out(BIO_new(BIO_s_mem()));
    PENSTOCK_CHECK(PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), password.c_str(),
                                                 static_cast<int>(password.size()), nullptr, nullptr) == 1);
    return text_of(out);
}

}  // namespace penstock::test
