// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/tap_twin.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace penstock::drivers {
namespace {

std::unexpected<Error> failed(const std::string& name, const std::string& step, int reason) {
    const Errc code = reason == EPERM || reason == EACCES ? Errc::PermissionDenied
                      : reason == EBUSY                   ? Errc::AlreadyExists
                                                          : Errc::Unavailable;
    return fail(code, "twin " + name + ": " + step + ": " + std::strerror(reason));
}

ifreq request_for(const std::string& name) {
    ifreq ifr{};
    std::memcpy(ifr.ifr_name, name.c_str(), std::min(name.size(), sizeof(ifr.ifr_name) - 1));
    return ifr;
}

std::string ipv6_sysctl(const std::string& name, const char* key) {
    return "/proc/sys/net/ipv6/conf/" + name + "/" + key;
}

// Enables what the twin's IPv6 addresses require and the host's defaults may have disabled on new interfaces:
// IPv6 itself, and the link-local address. The link-local address is the source of the kernel's neighbour
// solicitations. 0 is the modified EUI-64 that Linux derives from the MAC.
void switch_ipv6_on(const std::string& name) {
    constexpr int kNoLinkLocal = 1;  // IN6_ADDR_GEN_MODE_NONE
    int mode = 0;
    if (std::ifstream(ipv6_sysctl(name, "addr_gen_mode")) >> mode && mode == kNoLinkLocal) {
        std::ofstream(ipv6_sysctl(name, "addr_gen_mode")) << "0\n";
    }
    std::ofstream(ipv6_sysctl(name, "disable_ipv6")) << "0\n";
}

// Adds one address to the interface. IFA_F_NODAD, because a tentative IPv6 address would not answer during
// its first second.
Status add_address(nl_sock* netlink, int ifindex, const std::string& name, const InterfaceAddress& entry) {
    const bool is_v4 = entry.address.is_v4();
    const auto& bytes = entry.address.bytes();
    nl_addr* const local =
        is_v4 ? nl_addr_build(AF_INET, bytes.data() + 12, 4) : nl_addr_build(AF_INET6, bytes.data(), 16);
    rtnl_addr* const address = rtnl_addr_alloc();
    nl_addr_set_prefixlen(local, entry.prefix_length);
    rtnl_addr_set_ifindex(address, ifindex);
    rtnl_addr_set_local(address, local);
    rtnl_addr_set_prefixlen(address, entry.prefix_length);
    if (is_v4 && entry.prefix_length < 31) {
        const uint32_t host_bits =
            entry.prefix_length == 0 ? UINT32_MAX : (1u << (32 - entry.prefix_length)) - 1;
        const Be32 broadcast = Be32::from_host(entry.address.v4_wire().host() | host_bits);
        nl_addr* const to_all = nl_addr_build(AF_INET, &broadcast, sizeof(broadcast));
        rtnl_addr_set_broadcast(address, to_all);
        nl_addr_put(to_all);
    } else if (!is_v4) {
        rtnl_addr_set_flags(address, IFA_F_NODAD);
    }
    // NLM_F_REPLACE: an inherited twin has the address already.
    const int result = rtnl_addr_add(netlink, address, NLM_F_CREATE | NLM_F_REPLACE);
    rtnl_addr_put(address);
    nl_addr_put(local);
    if (result < 0) {
        // The kernel's own error would be "Permission denied", or "Invalid input data" below IPv6's minimum
        // MTU.
        int disabled = 1;
        const bool no_ipv6 =
            !is_v4 && (!(std::ifstream(ipv6_sysctl(name, "disable_ipv6")) >> disabled) || disabled != 0);
        return fail(Errc::Unavailable,
                    "twin " + name + ": address " + entry.to_string() + ": " +
                        (no_ipv6 ? "IPv6 is disabled in this kernel" : nl_geterror(result)));
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<TapTwin>> TapTwin::open(const TapTwinOptions& options, int inherited) {
    if (options.name.empty() || options.name.size() >= IFNAMSIZ ||
        options.name.find('/') != std::string::npos || options.name.find('%') != std::string::npos) {
        return fail(Errc::InvalidArgument,
                    "twin \"" + options.name + "\": an interface name has 1 to 15 characters and no / or %");
    }
    std::unique_ptr<TapTwin> twin(new TapTwin);
    twin->name_ = options.name;
    twin->fd_ = inherited;
    twin->is_inherited_ = twin->is_carrier_unknown_ = inherited >= 0;
    if (!twin->is_inherited_) {
        PENSTOCK_TRY_STATUS(twin->make(options.name));
    }
    twin->ifindex_ = static_cast<int>(if_nametoindex(options.name.c_str()));
    PENSTOCK_TRY_STATUS(twin->give_face(options));
    return twin;
}

Status TapTwin::make(const std::string& name) {
    if (if_nametoindex(name.c_str()) != 0) {
        return fail(Errc::AlreadyExists, "twin " + name +
                                             ": an interface of that name already exists and belongs to "
                                             "another program (choose another name)");
    }
    fd_ = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) {
        return failed(name, "/dev/net/tun", errno);
    }
    ifreq ifr = request_for(name);
    // IFF_TUN_EXCL closes the gap since the check above.
    ifr.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL);
    if (ioctl(fd_, TUNSETIFF, &ifr) != 0) {
        return failed(name, "TUNSETIFF", errno);
    }
    if (ioctl(fd_, TUNSETOFFLOAD, 0) != 0) {
        return failed(name, "TUNSETOFFLOAD", errno);
    }
    return {};
}

Status TapTwin::give_face(const TapTwinOptions& options) {
    // The link-local address must not wait for duplicate address detection either. The kernel adds it, not
    // this program.
    std::ofstream(ipv6_sysctl(name_, "accept_dad")) << "0\n";
    if (std::ranges::any_of(options.addresses,
                            [](const InterfaceAddress& entry) { return !entry.address.is_v4(); })) {
        switch_ipv6_on(name_);
    }

    const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq mac = request_for(name_);
    mac.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    std::copy(options.mac.bytes.begin(), options.mac.bytes.end(), mac.ifr_hwaddr.sa_data);
    ifreq mtu = request_for(name_);
    mtu.ifr_mtu = options.mtu;
    ifreq up = request_for(name_);
    up.ifr_flags = IFF_UP | IFF_BROADCAST | IFF_MULTICAST;
    const struct {
        unsigned long request;
        ifreq* argument;
        std::string step;
    } steps[] = {
        {SIOCSIFHWADDR, &mac, "MAC " + options.mac.to_string()},
        {SIOCSIFMTU, &mtu, "MTU " + std::to_string(options.mtu)},
        {SIOCSIFFLAGS, &up, "set up"},
    };
    ifreq present = request_for(name_);
    // Linux forgets all neighbours of an interface that gets a MAC, also if it is the same.
    const bool has_mac = is_inherited_ && ioctl(control, SIOCGIFHWADDR, &present) == 0 &&
                         std::ranges::equal(options.mac.bytes, std::span(present.ifr_hwaddr.sa_data).first(6),
                                            {}, {}, [](char byte) { return static_cast<uint8_t>(byte); });
    for (const auto& step : steps) {
        if (has_mac && step.request == SIOCSIFHWADDR) {
            continue;
        }
        if (ioctl(control, step.request, step.argument) != 0) {
            const int reason = errno;
            close(control);
            return failed(name_, step.step, reason);
        }
    }
    close(control);

    nl_sock* const netlink = nl_socket_alloc();
    Status added;
    if (const int result = nl_connect(netlink, NETLINK_ROUTE); result < 0) {
        added = fail(Errc::Unavailable, "twin " + name_ + ": netlink: " + nl_geterror(result));
    }
    for (const InterfaceAddress& address : options.addresses) {
        if (added) {
            added = add_address(netlink, ifindex_, name_, address);
        }
    }
    nl_socket_free(netlink);
    return added;
}

TapTwin::~TapTwin() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

ssize_t TapTwin::read(std::span<uint8_t> room) noexcept {
    const ssize_t length = ::read(fd_, room.data(), room.size());
    return length < 0 ? 0 : length;
}

bool TapTwin::write(std::span<const iovec> pieces) noexcept {
    return writev(fd_, pieces.data(), static_cast<int>(pieces.size())) > 0;
}

void TapTwin::set_carrier(bool up) noexcept {
    if (up != carrier_ || is_carrier_unknown_) {
        int value = up ? 1 : 0;
        // Kernels before 5.0 have no such request; the twin's link then stays up.
        if (ioctl(fd_, TUNSETCARRIER, &value) == 0) {
            carrier_ = up;
            is_carrier_unknown_ = false;
        }
    }
}

void TapTwin::set_down() noexcept {
    set_carrier(false);
    const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq down = request_for(name_);
    if (ioctl(control, SIOCGIFFLAGS, &down) == 0) {
        down.ifr_flags = static_cast<short>(down.ifr_flags & ~IFF_UP);
        ioctl(control, SIOCSIFFLAGS, &down);
    }
    close(control);
}

uint64_t TapTwin::dropped_by_linux() const {
    // "  NAME: 8 receive columns, then bytes, packets, errs, drop, ... of transmission", of the process's
    // network namespace.
    constexpr int kColumnsBeforeDrop = 11;
    std::ifstream table("/proc/self/net/dev");
    for (std::string line; std::getline(table, line);) {
        const size_t colon = line.find(':');
        const size_t first = line.find_first_not_of(' ');
        if (colon == std::string::npos || std::string_view(line).substr(first, colon - first) != name_) {
            continue;
        }
        std::istringstream columns(line.substr(colon + 1));
        uint64_t value = 0;
        for (int column = 0; column <= kColumnsBeforeDrop; ++column) {
            columns >> value;
        }
        return columns ? value : 0;
    }
    return 0;
}

}  // namespace penstock::drivers
