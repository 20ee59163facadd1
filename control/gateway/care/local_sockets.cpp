// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/local_sockets.hpp"

#include <netinet/in.h>

#include <array>
#include <cstring>
#include <fstream>

#include "dataplane/base/text.hpp"

namespace penstock::gateway {
namespace {

// The kernel's enum, include/net/tcp_states.h. UDP uses the same values: CLOSE means bound and not connected.
constexpr uint32_t kTcpListen = 10;
constexpr uint32_t kUdpUnconnected = 7;

std::string_view next_word(std::string_view& line) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

std::optional<uint32_t> hex(std::string_view digits) {
    return whole_number<uint32_t>(digits, 16);
}

// The address is printed as 32-bit words, each a number in this host's byte order.
std::optional<IpAddr> address_of(std::string_view digits, IpFamily family) {
    constexpr size_t kWordDigits = 8;
    std::array<uint8_t, 16> bytes{};
    const size_t words = family == IpFamily::V4 ? 1 : 4;
    if (digits.size() != words * kWordDigits) {
        return std::nullopt;
    }
    for (size_t i = 0; i < words; ++i) {
        const auto word = hex(digits.substr(i * kWordDigits, kWordDigits));
        if (!word) {
            return std::nullopt;
        }
        std::memcpy(bytes.data() + i * sizeof(uint32_t), &*word, sizeof(uint32_t));
    }
    if (family == IpFamily::V4) {
        return IpAddr::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    constexpr std::array<uint8_t, 12> kMapped{
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // an IPv6 socket bound to an IPv4 address
    if (std::memcmp(bytes.data(), kMapped.data(), kMapped.size()) == 0) {
        return IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    return IpAddr::v6(bytes);
}

}  // namespace

//    0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 ...
//   sl  local         remote        state
std::optional<LocalListener> parse_socket_line(std::string_view line, Protocol protocol, IpFamily family) {
    next_word(line);
    const std::string_view local = next_word(line);
    next_word(line);
    const auto state = hex(next_word(line));
    const size_t colon = local.find(':');
    if (!state || colon == std::string_view::npos ||
        *state != (protocol == Protocol::Tcp ? kTcpListen : kUdpUnconnected)) {
        return std::nullopt;
    }
    const auto address = address_of(local.substr(0, colon), family);
    const auto port = hex(local.substr(colon + 1));
    if (!address || !port || *port == 0 || *port > 0xffff || address->is_loopback()) {
        return std::nullopt;
    }
    return LocalListener{protocol, *address, static_cast<L4Port>(*port)};
}

std::vector<LocalListener> local_listeners(const std::string& folder) {
    struct File {
        const char* name;
        Protocol protocol;
        IpFamily family;
    };
    constexpr std::array<File, 4> kFiles{{{"tcp", Protocol::Tcp, IpFamily::V4},
                                          {"tcp6", Protocol::Tcp, IpFamily::V6},
                                          {"udp", Protocol::Udp, IpFamily::V4},
                                          {"udp6", Protocol::Udp, IpFamily::V6}}};
    std::vector<LocalListener> listeners;
    for (const File& file : kFiles) {
        std::ifstream in(folder + "/" + file.name);
        for (std::string line; listeners.size() < kListenersMax && std::getline(in, line);) {
            if (const auto listener = parse_socket_line(line, file.protocol, file.family)) {
                listeners.push_back(*listener);
            }
        }
    }
    return listeners;
}

}  // namespace penstock::gateway
