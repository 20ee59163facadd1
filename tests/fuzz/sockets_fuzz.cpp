// SPDX-License-Identifier: Apache-2.0
// Any bytes as a line of /proc/net/{tcp,tcp6,udp,udp6}, and as the beginning of a response to an HTTP probe.
#include <string_view>

#include "control/gateway/care/local_sockets.hpp"
#include "control/gateway/care/prober.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            const auto listener = gateway::parse_socket_line(text, protocol, family);
            if (listener) {
                PENSTOCK_CHECK(listener->port != 0 && listener->protocol == protocol);
                PENSTOCK_CHECK(!listener->address.is_loopback());
                PENSTOCK_CHECK(family == IpFamily::V6 || listener->address.family() == IpFamily::V4);
            }
        }
    }
    // Further bytes never change a verdict.
    const auto answer = gateway::http_answer(text);
    for (size_t length = 0; length < size && length < 64; ++length) {
        const auto earlier = gateway::http_answer(text.substr(0, length));
        PENSTOCK_CHECK(!earlier || (answer && earlier->succeeded == answer->succeeded));
    }
    return 0;
}
