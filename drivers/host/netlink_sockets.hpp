// SPDX-License-Identifier: Apache-2.0
// The rtnetlink sockets of the mirror: one for the kernel's notifications, one for dumps, one for requests to
// resolve a neighbour. Only transport: messages are passed to the caller undecoded (netlink_messages.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

struct nl_sock;
struct nlmsghdr;

namespace penstock::drivers {

class NetlinkSockets {
 public:
    using TakeMessage = std::function<void(const nlmsghdr*)>;

    NetlinkSockets() = default;
    ~NetlinkSockets();
    NetlinkSockets(const NetlinkSockets&) = delete;
    NetlinkSockets& operator=(const NetlinkSockets&) = delete;

    // Connects, and subscribes to links, neighbours, addresses, routes and next hop objects. Once, before any
    // other call.
    Status open();

    [[nodiscard]] int fd() const noexcept;  // readable when the kernel has sent notifications

    enum class Received : uint8_t {
        All,   // no notification is pending
        Some,  // more may be pending
        Lost,  // notifications were lost
    };
    // Passes pending notifications to `take`. Does not block.
    Received receive(const TakeMessage& take);

    // Sends a dump request and passes every message of the answer to `take`. Blocks for the duration of the
    // dump. `interrupted`: the table changed during the last attempt too, so the dump may be incomplete.
    template <typename Header>
    Status dump(int type, Header header, const TakeMessage& take, bool* interrupted = nullptr) {
        return dump(type, &header, sizeof(header), take, interrupted);
    }

    // Requests the MAC of a next hop on this interface. A refusal is ignored.
    void request_resolution(int ifindex, const IpAddr& address);

 private:
    Status dump(int type, void* header, size_t header_bytes, const TakeMessage& take, bool* interrupted);

    nl_sock* notifications_ = nullptr;
    nl_sock* dumps_ = nullptr;
    nl_sock* requests_ = nullptr;
};

}  // namespace penstock::drivers
