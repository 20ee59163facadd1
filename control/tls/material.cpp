// SPDX-License-Identifier: Apache-2.0
#include "control/tls/material.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "control/base/openssl_handles.hpp"

namespace penstock::tls {
namespace {

using openssl::Bio;
using openssl::Certificate;
using openssl::Key;
using Store = std::unique_ptr<X509_STORE, openssl::Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, openssl::Freed<X509_STORE_CTX_free>>;

Result<std::string> read_file(const std::string& path) {
    errno = 0;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
        return fail(Errc::Unavailable, "is a folder");
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        return fail(Errc::Unavailable, std::string("cannot be read: ") + std::strerror(errno));
    }
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.empty()) {
        return fail(Errc::InvalidArgument, "is empty");
    }
    return text;
}

// An encrypted key would make OpenSSL read a password from the terminal.
int no_password(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return 0;
}

// Describes the content of a PEM text that has no certificate, for the error.
std::string kind_of(const std::string& pem) {
    if (pem.find("PRIVATE KEY-----") != std::string::npos) {
        return "holds a private key and no certificate";
    }
    if (pem.find("-----BEGIN CERTIFICATE REQUEST-----") != std::string::npos) {
        return "holds a certificate request and no certificate";
    }
    return pem.find("-----BEGIN ") != std::string::npos ? "holds PEM blocks, but no certificate"
                                                        : "is not a PEM file: it contains no certificate";
}

// All certificates in `pem`, at least one.
Result<std::vector<Certificate>> certificates_in(const std::string& pem) {
    const Bio bio = openssl::reading(pem);
    std::vector<Certificate> found;
    while (Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
        found.push_back(std::move(certificate));
    }
    // The last attempt ends with "no start line" at the end of the text, and with another reason at a damaged
    // certificate.
    const unsigned long last = ERR_peek_last_error();
    ERR_clear_error();
    if (ERR_GET_REASON(last) != PEM_R_NO_START_LINE) {
        return fail(Errc::InvalidArgument,
                    "certificate " + std::to_string(found.size() + 1) + " in it is damaged");
    }
    if (found.empty()) {
        return fail(Errc::InvalidArgument, kind_of(pem));
    }
    return found;
}

Result<Key> key_in(const std::string& pem) {
    const Bio bio = openssl::reading(pem);
    bool is_encrypted = false;
    Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, &is_encrypted));
    ERR_clear_error();
    if (is_encrypted) {
        return fail(Errc::Unsupported, "is encrypted; store the key without a password");
    }
    if (!key) {
        return fail(Errc::InvalidArgument, pem.find("-----BEGIN CERTIFICATE-----") != std::string::npos
                                               ? "holds a certificate and no private key"
                                               : "holds no private key in PEM");
    }
    return key;
}

std::string text_of(const X509_NAME* name) {
    const Bio bio(BIO_new(BIO_s_mem()));
    // RFC 2253 escapes control characters, so that a name cannot forge a log line.
    X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string("(no subject)");
}

Material::Time time_of(const ASN1_TIME* time) {
    std::tm parts{};
    return ASN1_TIME_to_tm(time, &parts) == 1 ? std::chrono::system_clock::from_time_t(timegm(&parts))
                                              : Material::Time();
}

}  // namespace

Result<Material> read_material(const Files& files, const OptionNames& names) {
    const auto broken = [](const char* option, const std::string& path, const Error& error) {
        return fail(error.code, std::string(option) + ": " + path + " " + error.what);
    };
    Material out;
    auto certificate_text = read_file(files.certificate);
    if (!certificate_text) {
        return broken(names.certificate, files.certificate, certificate_text.error());
    }
    auto key_text = read_file(files.key);
    if (!key_text) {
        return broken(names.key, files.key, key_text.error());
    }
    auto authority_text = read_file(files.authority);
    if (!authority_text) {
        return broken(names.authority, files.authority, authority_text.error());
    }
    const auto chain = certificates_in(*certificate_text);
    if (!chain) {
        return broken(names.certificate, files.certificate, chain.error());
    }
    const auto key = key_in(*key_text);
    if (!key) {
        return broken(names.key, files.key, key.error());
    }
    const bool matches = X509_check_private_key(chain->front().get(), key->get()) == 1;
    ERR_clear_error();
    out.subject = text_of(X509_get_subject_name(chain->front().get()));
    if (!matches) {
        return fail(Errc::InvalidArgument, std::string(names.key) + ": " + files.key +
                                               " does not belong to the certificate in " + files.certificate +
                                               " (" + out.subject + ")");
    }
    const auto authorities = certificates_in(*authority_text);
    if (!authorities) {
        return broken(names.authority, files.authority, authorities.error());
    }
    out.valid_from = time_of(X509_get0_notBefore(chain->front().get()));
    out.expires = time_of(X509_get0_notAfter(chain->front().get()));
    for (const Certificate& authority : *authorities) {
        if (const auto expires = time_of(X509_get0_notAfter(authority.get()));
            expires > out.authority_expires) {
            out.authority_expires = expires;
            out.authority_valid_from = time_of(X509_get0_notBefore(authority.get()));
        }
    }
    out.certificate_pem = std::move(*certificate_text);
    out.key_pem = std::move(*key_text);
    out.authority_pem = std::move(*authority_text);
    return out;
}

Status verify_client(const Material& material, const std::string& certificate_pem,
                     const std::string& others_pem) {
    const auto sent = certificates_in(certificate_pem);
    const auto authorities = certificates_in(material.authority_pem);
    if (!sent || !authorities) {
        return fail(Errc::PermissionDenied, "the client sent no certificate");
    }
    X509* const certificate = sent->front().get();
    const auto intermediates = certificates_in(others_pem);
    const Store store(X509_STORE_new());
    for (const Certificate& authority : *authorities) {
        X509_STORE_add_cert(store.get(), authority.get());
    }
    STACK_OF(X509)* others = sk_X509_new_null();
    for (size_t i = 0; intermediates && i < intermediates->size(); ++i) {
        sk_X509_push(others, (*intermediates)[i].get());
    }
    const StoreContext context(X509_STORE_CTX_new());
    const bool ready = X509_STORE_CTX_init(context.get(), store.get(), certificate, others) == 1 &&
                       X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_CLIENT) == 1;
    const bool verified = ready && X509_verify_cert(context.get()) == 1;
    const char* const why =
        ready ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())) : "out of memory";
    ERR_clear_error();
    sk_X509_free(others);
    if (!verified) {
        return fail(Errc::PermissionDenied, text_of(X509_get_subject_name(certificate)) + " (issuer " +
                                                text_of(X509_get_issuer_name(certificate)) + "): " + why);
    }
    return {};
}

}  // namespace penstock::tls
