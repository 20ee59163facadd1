// SPDX-License-Identifier: Apache-2.0
#include "control/flow_records/collector.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/flow_records/ipfix.hpp"

namespace penstock::flow_records {
namespace {

constexpr size_t kMessageBytesMax = 1'400;  // also where a tunnel of the path narrows an MTU of 1,500
constexpr size_t kIpv4Headers = 28, kIpv6Headers = 48;  // of IP without options, and UDP

Status connect_to(int socket, const SocketAddress& to) {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    if (to.address.is_v4()) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons(to.port);
        std::memcpy(&v4.sin_addr, to.address.bytes().data() + 12, 4);
    } else {
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(to.port);
        std::memcpy(&v6.sin6_addr, to.address.bytes().data(), 16);
    }
    const int result = to.address.is_v4()
                           ? ::connect(socket, reinterpret_cast<const sockaddr*>(&v4), sizeof v4)
                           : ::connect(socket, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    return result == 0 ? Status{} : fail(Errc::Unavailable, to.to_string() + ": " + std::strerror(errno));
}

}  // namespace

Result<Collector> Collector::connect(const SocketAddress& address) {
    const bool is_v6 = !address.address.is_v4();
    Descriptor socket(::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) {
        return fail(Errc::Exhausted, std::string("socket: ") + std::strerror(errno));
    }
    // If the path is narrower than its first link, Linux and routers fragment messages.
    const int may_fragment = is_v6 ? IPV6_PMTUDISC_DONT : IP_PMTUDISC_DONT;
    ::setsockopt(socket.get(), is_v6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP},
                 is_v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &may_fragment, sizeof may_fragment);
    PENSTOCK_TRY_STATUS(connect_to(socket.get(), address));
    return Collector(std::move(socket), is_v6);
}

Collector::Outcome Collector::send(std::span<const uint8_t> message) {
    Outcome outcome;
    // Linux reports an ICMP error about an earlier message once, by a call that sends nothing.
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) >= 0) {
            outcome.is_sent = true;
            return outcome;
        }
        if (errno != ECONNREFUSED && errno != EHOSTUNREACH) {
            return outcome;
        }
        outcome.was_refused = true;
    }
    return outcome;
}

size_t Collector::message_bytes_max() const {
    int mtu = 0;
    socklen_t length = sizeof mtu;
    const int result = is_v6_ ? ::getsockopt(socket_.get(), IPPROTO_IPV6, IPV6_MTU, &mtu, &length)
                              : ::getsockopt(socket_.get(), IPPROTO_IP, IP_MTU, &mtu, &length);
    const size_t headers = is_v6_ ? kIpv6Headers : kIpv4Headers;
    if (result != 0 || mtu < static_cast<int>(headers + IpfixEncoder::kMessageBytesMin)) {
        return IpfixEncoder::kMessageBytesMin;
    }
    return std::min(static_cast<size_t>(mtu) - headers, kMessageBytesMax);
}

}  // namespace penstock::flow_records
