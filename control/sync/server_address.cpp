// SPDX-License-Identifier: Apache-2.0
#include "control/sync/server_address.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace penstock::sync {

std::string host_of(std::string_view url) {
    if (const size_t scheme = url.find("://"); scheme != std::string_view::npos) {
        url.remove_prefix(scheme + 3);
    }
    url = url.substr(0, url.find_first_of("/?#"));
    if (const size_t user = url.rfind('@'); user != std::string_view::npos) {
        url.remove_prefix(user + 1);
    }
    if (url.starts_with('[')) {
        const size_t end = url.find(']');
        return end == std::string_view::npos ? "" : std::string(url.substr(1, end - 1));
    }
    return std::string(url.substr(0, url.find(':')));
}

Result<std::vector<IpAddr>> addresses_of(const std::string& host) {
    if (const auto literal = IpAddr::parse(host)) {
        return std::vector<IpAddr>{*literal};
    }
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0) {
        return fail(Errc::NotFound, host + ": " + ::gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    std::vector<IpAddr> addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        if (each->ai_family == AF_INET) {
            std::array<uint8_t, 4> bytes{};
            std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr,
                        bytes.size());
            addresses.push_back(IpAddr::v4(bytes[0], bytes[1], bytes[2], bytes[3]));
        } else if (each->ai_family == AF_INET6) {
            std::array<uint8_t, 16> bytes{};
            std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr,
                        bytes.size());
            addresses.push_back(IpAddr::v6(bytes));
        }
    }
    std::ranges::sort(addresses);
    addresses.erase(std::ranges::unique(addresses).begin(), addresses.end());
    return addresses;
}

}  // namespace penstock::sync
