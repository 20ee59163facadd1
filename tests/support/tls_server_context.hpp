// The server's side of TLS for the tests' servers.
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
    // `protocols`: what ALPN may choose, in order of preference; none: it is not answered.
    TlsServerContext(const ServerTls& tls, std::vector<std::string> protocols);
    SSL_CTX* get() const { return context_.get(); }

 private:
    struct Free {
        void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    };
    std::unique_ptr<std::string> protocols_;  // in wire form; the call-back has its address
    std::unique_ptr<SSL_CTX, Free> context_;
};

// Of the client's certificate; "" where it showed none.
[[nodiscard]] std::string peer_common_name(SSL* ssl);

}  // namespace penstock::test
