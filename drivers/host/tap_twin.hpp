// The Linux face of a NicPort: a TAP interface with the same MAC and MTU that carries the gateway's addresses. What is not a flow of ours
// is written here and Linux sees it as if it had come from the NIC; what Linux sends here leaves through the NIC. So `ip`, FRR and ping
// work as on any interface. It lives as long as the process: the kernel removes it with its descriptor.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/host/interface_address.hpp"

struct iovec;

namespace penstock::drivers {

struct TapTwinOptions {
    std::string name;
    MacAddr mac;
    uint16_t mtu = 1500;
    std::vector<InterfaceAddress> addresses;
};

class TapTwin {
 public:
    // Makes the interface, without offloads (so that every checksum Linux writes is complete and no frame exceeds the MTU), gives it MAC,
    // MTU and addresses (without duplicate address detection: the addresses must serve at once) and sets it up. An IPv6 address among them
    // switches IPv6 on for the twin where the host's defaults have it off. AlreadyExists: an interface of that name is there already; it
    // is somebody else's and stays untouched.
    static Result<std::unique_ptr<TapTwin>> open(const TapTwinOptions& options);
    ~TapTwin();
    TapTwin(const TapTwin&) = delete;
    TapTwin& operator=(const TapTwin&) = delete;

    // A frame that Linux sent; its length, 0 when there is none. Never blocks. A frame longer than `room` is cut to it by the kernel,
    // so room is MTU and Ethernet header at least.
    [[nodiscard]] ssize_t read(std::span<uint8_t> room) noexcept;
    // Gives Linux a frame. False where it refused: interface down, out of memory.
    [[nodiscard]] bool write(std::span<const iovec> pieces) noexcept;

    // Lets Linux see the NIC's link. Without carrier its routes stay, marked linkdown: routing daemons go by it, and Linux itself where
    // ignore_routes_with_linkdown is set.
    void set_carrier(bool up) noexcept;
    // The NIC is gone for good: no carrier, and the interface is set down, with which Linux withdraws its routes and neighbours.
    void set_down() noexcept;

    // Frames of Linux that waited to be read and found the interface's queue full, since it was made. Reads a file of /proc; any thread.
    [[nodiscard]] uint64_t dropped_by_linux() const;

    [[nodiscard]] int fd() const noexcept { return fd_; }  // readable when Linux has sent something
    [[nodiscard]] int ifindex() const noexcept { return ifindex_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
    TapTwin() = default;
    Status give_face(const TapTwinOptions& options);
    int fd_ = -1;
    int ifindex_ = 0;
    std::string name_;
    bool carrier_ = true;
};

}  // namespace penstock::drivers
