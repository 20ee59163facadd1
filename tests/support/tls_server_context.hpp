// SPDX-License-Identifier: Apache-2.0
// TLS on the server side, for the tests' servers.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificates.hpp"

namespace penstock::test {

struct ServerTls;

class TlsServerContext {
 public:
    // `protocols`: ALPN protocols in order of preference; empty: ALPN is not answered.
    TlsServerContext(const ServerTls& tls, std::vector<std::string> protocols);
    SSL_CTX* get() const { return context_.get(); }

 private:
    struct Free {
        void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    };
    std::unique_ptr<std::string> protocols_;  // in wire format; the callback holds its address
    std::unique_ptr<SSL_CTX, Free> context_;
};

// Common name in the client's certificate; "" if it sent none.
[[nodiscard]] std::string peer_common_name(SSL* ssl);

}  // namespace penstock::test
