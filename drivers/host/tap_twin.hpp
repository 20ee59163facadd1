// SPDX-License-Identifier: Apache-2.0
// The Linux counterpart of a NicPort: a TAP interface with the same MAC and MTU that carries the gateway's
// addresses. Packets that belong to no flow are written to it, and Linux receives them as if from the NIC.
// Frames that Linux sends on it leave through the NIC. So `ip`, FRR and ping work as on any interface. The
// kernel removes the interface when its file descriptor is closed, at the latest with the process.
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
    // Creates the interface, sets its MAC, MTU and addresses, and sets it up. It has no offloads, so every
    // checksum that Linux writes is complete and no frame exceeds the MTU. The addresses skip duplicate
    // address detection, because they must be usable at once. If there is an IPv6 address, IPv6 is enabled on
    // the twin if the host's defaults disable it. AlreadyExists: there is an interface of that name already;
    // it belongs to another program and stays unchanged. `inherited`: descriptor of this twin from a former
    // process, which it owns from then on; -1: none. Addresses, routes and neighbours of the twin stay.
    static Result<std::unique_ptr<TapTwin>> open(const TapTwinOptions& options, int inherited = -1);
    ~TapTwin();
    TapTwin(const TapTwin&) = delete;
    TapTwin& operator=(const TapTwin&) = delete;

    // Reads a frame that Linux sent. Returns its length, 0 if there is none. Never blocks. The kernel cuts a
    // frame that is longer than `room`, so `room` must hold at least the MTU and the Ethernet header.
    [[nodiscard]] ssize_t read(std::span<uint8_t> room) noexcept;
    // Passes a frame to Linux. False if Linux refused it: interface down, out of memory.
    [[nodiscard]] bool write(std::span<const iovec> pieces) noexcept;

    // Copies the NIC's link state to the twin's carrier. Without carrier, Linux's routes through it stay,
    // marked linkdown. Routing daemons react to that, and Linux itself if ignore_routes_with_linkdown is set.
    void set_carrier(bool up) noexcept;
    // For a NIC that was removed: clears the carrier and sets the interface down, so that Linux withdraws its
    // routes and neighbours.
    void set_down() noexcept;

    // Frames of Linux that were dropped because the interface's queue was full, since its creation. Reads a
    // file of /proc; any thread.
    [[nodiscard]] uint64_t dropped_by_linux() const;

    [[nodiscard]] int fd() const noexcept { return fd_; }  // readable when Linux has sent something
    [[nodiscard]] int ifindex() const noexcept { return ifindex_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
    TapTwin() = default;
    Status make(const std::string& name);
    Status give_face(const TapTwinOptions& options);
    int fd_ = -1;
    int ifindex_ = 0;
    std::string name_;
    bool carrier_ = true;
    bool is_inherited_ = false;
    bool is_carrier_unknown_ = false;  // of an inherited twin
};

}  // namespace penstock::drivers
