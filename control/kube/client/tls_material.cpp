// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/tls_material.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <climits>

#include "control/base/openssl_handles.hpp"

namespace penstock::kube {
namespace {

using openssl::Bio;
using openssl::Certificate;
using openssl::Key;
using openssl::reading;

// OpenSSL requests the password of an encrypted key here. No user is present, and without a callback OpenSSL
// would prompt on the terminal.
int no_password(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return 0;
}

}  // namespace

Status check_ca(const std::string& pem) {
    const Bio bio = reading(pem);
    size_t found = 0;
    while (const Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
        ++found;
    }
    // The last attempt ends with "no start line" at the end of the text, and with another error if a
    // certificate is damaged.
    const unsigned long last = ERR_peek_last_error();
    ERR_clear_error();
    if (ERR_GET_REASON(last) != PEM_R_NO_START_LINE) {
        return fail(Errc::InvalidArgument, "CA: certificate " + std::to_string(found + 1) + " is damaged");
    }
    return found > 0 ? Status{} : fail(Errc::InvalidArgument, "CA: holds no certificate");
}

Status check_pair(const std::string& certificate_pem, const Secret& key_pem) {
    const Bio certificate_bio = reading(certificate_pem);
    const Certificate certificate(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
    const Bio key_bio = reading(key_pem.reveal());
    bool is_encrypted = false;
    const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_password, &is_encrypted));
    const bool matches = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
    ERR_clear_error();
    if (!certificate) {
        return fail(Errc::InvalidArgument, "client certificate: holds no certificate");
    }
    if (is_encrypted) {
        return fail(Errc::Unsupported, "client key: is encrypted; it must be stored without a password");
    }
    if (!key) {
        return fail(Errc::InvalidArgument, "client key: holds no private key");
    }
    return matches ? Status{}
                   : fail(Errc::InvalidArgument, "client key: does not belong to the client certificate");
}

}  // namespace penstock::kube
