// Makes civetweb end at once, which serves our pages and those of prometheus::Exposer. It looks at its stop flag only when its sleep in
// poll() ends, after up to two seconds, which is all that a clean stop may take. A connection to itself wakes it.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

namespace penstock::http {

class Knocking {
 public:
    // Connects there, and closes the connection again, every 20 ms for as long as this lives. `host` is where the server listens: a literal
    // address or a name, without brackets. Failure does not matter.
    Knocking(std::string host, uint16_t port);

 private:
    std::jthread thread_;
};

}  // namespace penstock::http
