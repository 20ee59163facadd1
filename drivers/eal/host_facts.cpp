// SPDX-License-Identifier: Apache-2.0
#include "drivers/eal/host_facts.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

namespace penstock::drivers {
namespace {

constexpr const char* kEphemeralRange = "/proc/sys/net/ipv4/ip_local_port_range";

}  // namespace

Result<nat::PortRange> parse_port_range(std::string_view text) {
    nat::PortRange range;
    L4Port* const fields[] = {&range.first, &range.last};
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    for (L4Port* field : fields) {
        while (at != end && (*at == ' ' || *at == '\t')) {
            ++at;
        }
        const auto [next, error] = std::from_chars(at, end, *field);
        if (error != std::errc{}) {
            return fail(Errc::Corrupt, "port range \"" + std::string(text) + "\" does not contain two ports");
        }
        at = next;
    }
    if (range.first > range.last) {
        return fail(Errc::Corrupt, "port range \"" + std::string(text) + "\" ends before it begins");
    }
    return range;
}

Result<nat::PortRange> host_ephemeral_range() {
    std::ifstream file(kEphemeralRange);
    std::string line;
    if (!std::getline(file, line)) {
        return fail(Errc::Unavailable, std::string(kEphemeralRange) + " cannot be read");
    }
    return parse_port_range(line);
}

std::vector<unsigned> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<unsigned> cpus;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) {
                cpus.push_back(cpu);
            }
        }
    }
    return cpus;
}

std::vector<IpAddr> host_addresses() {
    std::vector<IpAddr> addresses;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
        return addresses;
    }
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr) {
            continue;
        }
        if (entry->ifa_addr->sa_family == AF_INET) {
            addresses.push_back(
                IpAddr::v4(load<Be32>(&reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr)));
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            addresses.push_back(IpAddr::v6(load<std::array<uint8_t, 16>>(
                &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr)));
        }
    }
    freeifaddrs(list);
    return addresses;
}

Result<uint64_t> network_namespace() {
    struct stat facts{};
    if (stat("/proc/thread-self/ns/net", &facts) != 0) {
        return fail(Errc::Unavailable, std::string("/proc/thread-self/ns/net: ") + std::strerror(errno));
    }
    return static_cast<uint64_t>(facts.st_ino);
}

}  // namespace penstock::drivers
