// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/kernel_interface.hpp"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>

#include "dataplane/base/ip.hpp"

namespace penstock::drivers {
namespace {

// One ioctl on an interface by name; `fill` prepares the request. Returns nothing on failure, with the reason
// in errno.
template <typename Fill>
std::optional<ifreq> interface_ioctl(const std::string& name, unsigned long request, Fill fill) {
    ifreq ifr{};
    if (name.size() >= sizeof(ifr.ifr_name)) {
        errno = ENODEV;
        return std::nullopt;
    }
    std::memcpy(ifr.ifr_name, name.c_str(), name.size());
    fill(ifr);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return std::nullopt;
    }
    const int result = ioctl(fd, request, &ifr);
    const int reason = errno;
    close(fd);
    errno = reason;
    return result == 0 ? std::optional(ifr) : std::nullopt;
}

std::optional<ifreq> interface_ioctl(const std::string& name, unsigned long request) {
    return interface_ioctl(name, request, [](ifreq&) {});
}

// ethtool requests with one value.
std::optional<uint32_t> ethtool_get(const std::string& name, uint32_t command) {
    ethtool_value value{command, 0};
    if (!interface_ioctl(name, SIOCETHTOOL,
                         [&](ifreq& ifr) { ifr.ifr_data = reinterpret_cast<char*>(&value); })) {
        return std::nullopt;
    }
    return value.data;
}

bool ethtool_set(const std::string& name, uint32_t command, uint32_t data) {
    ethtool_value value{command, data};
    return interface_ioctl(name, SIOCETHTOOL,
                           [&](ifreq& ifr) { ifr.ifr_data = reinterpret_cast<char*>(&value); })
        .has_value();
}

std::string disable_ipv6_sysctl(const std::string& name) {
    return "/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6";
}

bool write_text(const std::string& path, const char* text) {
    std::ofstream file(path);
    file << text << '\n';
    file.flush();
    return file.good();
}

void report(const NoticeSink& sink, NoticeLevel level, const std::string& text) {
    if (sink) {
        sink(level, text);
    }
}

}  // namespace

Result<std::unique_ptr<KernelInterface>> KernelInterface::prepare(const std::string& name, uint16_t mtu,
                                                                  const NoticeSink& sink) {
    if (!interface_ioctl(name, SIOCGIFINDEX)) {
        return fail(Errc::NotFound, "interface " + name + ": " + std::strerror(errno));
    }
    std::unique_ptr<KernelInterface> interface(new KernelInterface(name));
    PENSTOCK_TRY_STATUS(interface->refuse_addresses());
    interface->silence_ipv6(sink);
    PENSTOCK_TRY_STATUS(interface->raise_mtu(mtu));
    interface->unglue_frames(sink);
    PENSTOCK_TRY_STATUS(interface->set_up());
    return interface;
}

Status KernelInterface::refuse_addresses() const {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) {
        return fail(Errc::Unavailable,
                    "interface " + name_ + ": addresses cannot be read: " + std::strerror(errno));
    }
    std::string found;
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || name_ != entry->ifa_name) {
            continue;
        }
        std::optional<IpAddr> address;
        if (entry->ifa_addr->sa_family == AF_INET) {
            const auto v4 = load<sockaddr_in>(entry->ifa_addr);
            address = IpAddr::v4(Be32::from_raw(v4.sin_addr.s_addr));
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            const auto v6 = load<sockaddr_in6>(entry->ifa_addr);
            address = IpAddr::v6(load<std::array<uint8_t, 16>>(&v6.sin6_addr));
        }
        if (address && !address->is_link_local()) {
            found += (found.empty() ? "" : ", ") + address->to_string();
        }
    }
    freeifaddrs(all);
    if (!found.empty()) {
        return fail(
            Errc::InvalidArgument,
            "interface " + name_ + " has addresses " + found +
                ": configure them on the port's twin instead, otherwise Linux answers for them as well");
    }
    return {};
}

Status KernelInterface::raise_mtu(uint16_t mtu) {
    const auto now = interface_ioctl(name_, SIOCGIFMTU);
    if (!now) {
        return fail(Errc::Unavailable, "interface " + name_ + ": " + std::strerror(errno));
    }
    if (now->ifr_mtu >= mtu) {
        return {};
    }
    if (!interface_ioctl(name_, SIOCSIFMTU, [&](ifreq& ifr) { ifr.ifr_mtu = mtu; })) {
        return fail(errno == EPERM ? Errc::PermissionDenied : Errc::Unsupported,
                    "interface " + name_ + " does not accept MTU " + std::to_string(mtu) + ": " +
                        std::strerror(errno));
    }
    changes_.former_mtu = now->ifr_mtu;
    return {};
}

// With IPv6 on, the kernel assigns a link-local address to the interface and sends MLD and router
// solicitations with the port's own MAC.
void KernelInterface::silence_ipv6(const NoticeSink& sink) {
    const std::string path = disable_ipv6_sysctl(name_);
    std::ifstream file(path);
    int disabled = 1;
    if (!(file >> disabled) || disabled != 0) {
        return;  // already off, or a kernel without IPv6
    }
    if (write_text(path, "1")) {
        changes_.ipv6_was_on = true;
    } else {
        report(sink, NoticeLevel::Warning,
               "interface " + name_ + ": cannot disable IPv6 (" + path +
                   "); the kernel will send its own ND and MLD on it");
    }
}

// GRO and LRO merge TCP segments into frames of up to 64 KB before the packet socket receives them, and a
// frame larger than a slot is truncated.
void KernelInterface::unglue_frames(const NoticeSink& sink) {
    if (ethtool_get(name_, ETHTOOL_GGRO).value_or(0) != 0) {
        changes_.gro_was_on = ethtool_set(name_, ETHTOOL_SGRO, 0);
        if (!changes_.gro_was_on) {
            report(
                sink, NoticeLevel::Warning,
                "interface " + name_ + ": cannot disable GRO; merged frames will be truncated and dropped");
        }
    }
    const uint32_t flags = ethtool_get(name_, ETHTOOL_GFLAGS).value_or(0);
    if ((flags & ETH_FLAG_LRO) != 0) {
        changes_.lro_was_on = ethtool_set(name_, ETHTOOL_SFLAGS, flags & ~uint32_t{ETH_FLAG_LRO});
        if (!changes_.lro_was_on) {
            report(
                sink, NoticeLevel::Warning,
                "interface " + name_ + ": cannot disable LRO; merged frames will be truncated and dropped");
        }
    }
}

Status KernelInterface::set_up() {
    const auto now = interface_ioctl(name_, SIOCGIFFLAGS);
    if (!now) {
        return fail(Errc::Unavailable, "interface " + name_ + ": " + std::strerror(errno));
    }
    const auto wanted = static_cast<short>(now->ifr_flags | IFF_UP | IFF_ALLMULTI);
    if (wanted == now->ifr_flags) {
        return {};
    }
    if (!interface_ioctl(name_, SIOCSIFFLAGS, [&](ifreq& ifr) { ifr.ifr_flags = wanted; })) {
        return fail(errno == EPERM ? Errc::PermissionDenied : Errc::Unavailable,
                    "interface " + name_ + " cannot be set up: " + std::strerror(errno));
    }
    changes_.flags_added = static_cast<short>(wanted & ~now->ifr_flags);
    return {};
}

bool KernelInterface::has_carrier(const std::string& name) {
    const auto now = interface_ioctl(name, SIOCGIFFLAGS);
    return now && (now->ifr_flags & IFF_RUNNING) != 0;
}

std::optional<MacAddr> KernelInterface::mac(const std::string& name) {
    const auto found = interface_ioctl(name, SIOCGIFHWADDR);
    if (!found) {
        return std::nullopt;
    }
    MacAddr mac;
    std::ranges::transform(std::span(found->ifr_hwaddr.sa_data).first(mac.bytes.size()), mac.bytes.begin(),
                           [](char byte) { return static_cast<uint8_t>(byte); });
    return mac;
}

unsigned KernelInterface::combined_channels(const std::string& name) {
    ethtool_channels channels{};
    channels.cmd = ETHTOOL_GCHANNELS;
    if (!interface_ioctl(name, SIOCETHTOOL,
                         [&](ifreq& ifr) { ifr.ifr_data = reinterpret_cast<char*>(&channels); })) {
        return 0;
    }
    return channels.combined_count;
}

void KernelInterface::inherit(const InterfaceChanges& former) {
    if (former.former_mtu != 0) {
        changes_.former_mtu = former.former_mtu;
    }
    changes_.ipv6_was_on |= former.ipv6_was_on;
    changes_.gro_was_on |= former.gro_was_on;
    changes_.lro_was_on |= former.lro_was_on;
    changes_.flags_added = static_cast<short>(changes_.flags_added | former.flags_added);
}

KernelInterface::~KernelInterface() {
    if (changes_.flags_added != 0) {
        if (const auto now = interface_ioctl(name_, SIOCGIFFLAGS)) {
            interface_ioctl(name_, SIOCSIFFLAGS, [&](ifreq& ifr) {
                ifr.ifr_flags = static_cast<short>(now->ifr_flags & ~changes_.flags_added);
            });
        }
    }
    if (changes_.gro_was_on) {
        ethtool_set(name_, ETHTOOL_SGRO, 1);
    }
    if (changes_.lro_was_on) {
        ethtool_set(name_, ETHTOOL_SFLAGS, ethtool_get(name_, ETHTOOL_GFLAGS).value_or(0) | ETH_FLAG_LRO);
    }
    if (changes_.former_mtu != 0) {
        interface_ioctl(name_, SIOCSIFMTU, [&](ifreq& ifr) { ifr.ifr_mtu = changes_.former_mtu; });
    }
    if (changes_.ipv6_was_on) {
        write_text(disable_ipv6_sysctl(name_), "0");
    }
}

}  // namespace penstock::drivers
