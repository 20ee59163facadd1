// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/netlink_sockets.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

namespace penstock::drivers {
namespace {

// Socket buffer for pending notifications of the kernel: about 20,000 neighbour messages.
constexpr int kReceiveBuffer = 8 << 20;
// One recv() of notifications; the kernel fills at most 32 KB at a time.
constexpr size_t kMessageBuffer = 32'768;
// Notifications read in one receive(): a burst of messages must not delay the twins' frames.
constexpr int kDatagramsPerReceive = 1'024;

// A dump that was interrupted by a change is repeated. If the table changes all the time, the last attempt is
// used. The table is read again in the next round, because an interrupted dump may lack routes that did not
// change.
constexpr int kDumpAttempts = 3;

}  // namespace

NetlinkSockets::~NetlinkSockets() {
    nl_socket_free(notifications_);
    nl_socket_free(dumps_);
    nl_socket_free(requests_);
}

Status NetlinkSockets::open() {
    for (nl_sock** socket : {&notifications_, &dumps_, &requests_}) {
        *socket = nl_socket_alloc();
        if (const int result = nl_connect(*socket, NETLINK_ROUTE); result < 0) {
            return fail(Errc::Unavailable, std::string("netlink: ") + nl_geterror(result));
        }
        // Root may exceed net.core.rmem_max. Other users get up to that limit, and read everything again more
        // often.
        if (setsockopt(nl_socket_get_fd(*socket), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer,
                       sizeof(kReceiveBuffer)) != 0) {
            nl_socket_set_buffer_size(*socket, kReceiveBuffer, 0);
        }
    }
    // Makes the kernel apply the filters in dump requests (Linux 4.20). Older kernels send more, which is
    // filtered by the caller.
    const int on = 1;
    setsockopt(nl_socket_get_fd(dumps_), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
    nl_socket_disable_seq_check(notifications_);
    nl_socket_set_nonblocking(notifications_);
    if (const int result =
            nl_socket_add_memberships(notifications_, RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR,
                                      RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, 0);
        result < 0) {
        return fail(Errc::Unavailable, std::string("netlink groups: ") + nl_geterror(result));
    }
    // A kernel that refuses this group has no next hop objects.
    nl_socket_add_memberships(notifications_, RTNLGRP_NEXTHOP, 0);
    return {};
}

int NetlinkSockets::fd() const noexcept {
    return nl_socket_get_fd(notifications_);
}

NetlinkSockets::Received NetlinkSockets::receive(const TakeMessage& take) {
    alignas(nlmsghdr) std::array<unsigned char, kMessageBuffer> buffer;
    const int socket = fd();
    for (int i = 0; i < kDatagramsPerReceive; ++i) {
        const ssize_t length = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC);
        if (length < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno == ENOBUFS ? Received::Lost : Received::All;
        }
        if (static_cast<size_t>(length) > buffer.size()) {
            return Received::Lost;  // truncated: equivalent to a loss
        }
        int left = static_cast<int>(length);
        for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); nlmsg_ok(message, left) != 0;
             message = nlmsg_next(message, &left)) {
            take(message);
        }
    }
    return Received::Some;
}

Status NetlinkSockets::dump(int type, void* header, size_t header_bytes, const TakeMessage& take,
                            bool* interrupted) {
    int result = 0;
    for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
        result = nl_send_simple(dumps_, type, NLM_F_DUMP, header, header_bytes);
        if (result < 0) {
            break;
        }
        nl_cb* const callbacks = nl_cb_alloc(NL_CB_DEFAULT);
        nl_cb_set(
            callbacks, NL_CB_VALID, NL_CB_CUSTOM,
            [](nl_msg* message, void* argument) {
                (*static_cast<const TakeMessage*>(argument))(nlmsg_hdr(message));
                return static_cast<int>(NL_OK);
            },
            const_cast<TakeMessage*>(&take));
        result = nl_recvmsgs(dumps_, callbacks);
        nl_cb_put(callbacks);
        if (result != -NLE_DUMP_INTR) {
            break;
        }
    }
    if (interrupted != nullptr) {
        *interrupted = result == -NLE_DUMP_INTR;
    }
    // A family's main table is created with its first route. Until then, filtering by it fails with this
    // error.
    if (result < 0 && result != -NLE_DUMP_INTR && result != -NLE_OBJ_NOTFOUND) {
        return fail(Errc::Unavailable, std::string("netlink dump: ") + nl_geterror(result));
    }
    return {};
}

void NetlinkSockets::request_resolution(int ifindex, const IpAddr& address) {
    // `ip neigh replace ADDRESS dev TWIN nud none use`: creates the entry if it is missing, and marks it as
    // used, which makes the kernel resolve it.
    nl_msg* const message = nlmsg_alloc_simple(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
    ndmsg facts{};
    facts.ndm_family = address.is_v4() ? AF_INET : AF_INET6;
    facts.ndm_ifindex = ifindex;
    facts.ndm_state = NUD_NONE;
    facts.ndm_flags = NTF_USE;
    nlmsg_append(message, &facts, sizeof(facts), NLMSG_ALIGNTO);
    const auto& bytes = address.bytes();
    const size_t skipped = address.is_v4() ? 12 : 0;
    nla_put(message, NDA_DST, static_cast<int>(bytes.size() - skipped), bytes.data() + skipped);
    // No acknowledgement is requested. After a refusal (the kernel's table is full) the neighbour stays
    // unknown.
    nl_send_auto(requests_, message);
    nlmsg_free(message);
    std::array<unsigned char, 4096> refusal;
    while (recv(nl_socket_get_fd(requests_), refusal.data(), refusal.size(), MSG_DONTWAIT) > 0) {
    }
}

}  // namespace penstock::drivers
