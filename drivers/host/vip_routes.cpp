// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/vip_routes.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace penstock::drivers {
namespace {

// Changes in one system call. An acknowledgement takes about 2 KiB of the receive buffer (default 208 KiB).
constexpr size_t kBatch = 64;
constexpr size_t kAnswerBytes = 32 * 1024;
// The kernel answers during the send call. The limit only prevents an endless wait.
constexpr timeval kAnswerLimit{.tv_sec = 5, .tv_usec = 0};

struct Bytes {
    const uint8_t* data = nullptr;
    int length = 0;
};

Bytes bytes_of(const IpAddr& address) {
    const size_t skipped = address.is_v4() ? 12 : 0;
    return {address.bytes().data() + skipped, static_cast<int>(address.bytes().size() - skipped)};
}

// Appends a message to the batch with its sequence number, and frees it.
void take(std::vector<uint8_t>& batch, nl_msg* message, uint32_t sequence, int flags) {
    nlmsghdr* const header = nlmsg_hdr(message);
    header->nlmsg_seq = sequence;
    header->nlmsg_flags |= static_cast<uint16_t>(NLM_F_REQUEST | flags);
    const auto* const first = reinterpret_cast<const uint8_t*>(header);
    batch.insert(batch.end(), first, first + header->nlmsg_len);
    batch.resize(NLMSG_ALIGN(batch.size()));
    nlmsg_free(message);
}

nl_msg* route_message(const VipRouteChange& change, int ifindex) {
    const bool is_removal = change.kind == VipRouteChange::Kind::Remove;
    const int flags = is_removal                                       ? 0
                      : change.kind == VipRouteChange::Kind::AddBeside ? NLM_F_CREATE | NLM_F_APPEND
                                                                       : NLM_F_CREATE | NLM_F_EXCL;
    const IpAddr& vip = change.route.address;
    nl_msg* const message = nlmsg_alloc_simple(is_removal ? RTM_DELROUTE : RTM_NEWROUTE, flags);
    rtmsg facts{};
    facts.rtm_family = vip.is_v4() ? AF_INET : AF_INET6;
    facts.rtm_dst_len = static_cast<unsigned char>(vip.bits());
    facts.rtm_table = RT_TABLE_MAIN;
    facts.rtm_protocol = kVipRouteProtocol;
    facts.rtm_scope = vip.is_v4() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
    facts.rtm_type = RTN_UNICAST;
    nlmsg_append(message, &facts, sizeof(facts), NLMSG_ALIGNTO);
    const Bytes address = bytes_of(vip);
    nla_put(message, RTA_DST, address.length, address.data);
    nla_put_u32(message, RTA_OIF, static_cast<uint32_t>(ifindex));
    nla_put_u32(message, RTA_PRIORITY, change.route.metric);
    return message;
}

nl_msg* neighbour_message(const IpAddr& vip, int ifindex, int type) {
    nl_msg* const message = nlmsg_alloc_simple(type, type == RTM_NEWNEIGH ? NLM_F_CREATE | NLM_F_REPLACE : 0);
    ndmsg facts{};
    facts.ndm_family = vip.is_v4() ? AF_INET : AF_INET6;
    facts.ndm_ifindex = ifindex;
    facts.ndm_state = NUD_PERMANENT;
    nlmsg_append(message, &facts, sizeof(facts), NLMSG_ALIGNTO);
    const Bytes address = bytes_of(vip);
    nla_put(message, NDA_DST, address.length, address.data);
    if (type == RTM_NEWNEIGH) {
        nla_put(message, NDA_LLADDR, static_cast<int>(kVipNeighbourMac.bytes.size()),
                kVipNeighbourMac.bytes.data());
        nla_put_u8(message, NDA_PROTOCOL, kVipRouteProtocol);
    }
    return message;
}

VipRouteOutcome outcome_of(VipRouteChange::Kind kind, int error) {
    if (kind == VipRouteChange::Kind::Remove) {
        const bool is_gone = error == 0 || error == -ESRCH || error == -ENOENT || error == -ENODEV;
        return is_gone ? VipRouteOutcome::Done : VipRouteOutcome::Refused;
    }
    return error == 0         ? VipRouteOutcome::Done
           : error == -EEXIST ? VipRouteOutcome::Exists
                              : VipRouteOutcome::Refused;
}

}  // namespace

Result<std::unique_ptr<VipRoutes>> VipRoutes::open(TwinsByIndex twins, int receive_bytes) {
    std::array<nl_sock*, 2> sockets{nl_socket_alloc(), nl_socket_alloc()};
    for (nl_sock* const socket : sockets) {
        if (const int result = nl_connect(socket, NETLINK_ROUTE); result < 0) {
            std::ranges::for_each(sockets, nl_socket_free);
            return fail(Errc::Unavailable, std::string("VIP routes: netlink: ") + nl_geterror(result));
        }
    }
    const int on = 1;
    const int changes = nl_socket_get_fd(sockets[0]);
    setsockopt(changes, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));  // errors without the request
    setsockopt(changes, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof(receive_bytes));
    setsockopt(changes, SOL_SOCKET, SO_RCVTIMEO, &kAnswerLimit, sizeof(kAnswerLimit));
    // Makes the kernel apply the filter of a dump request (Linux 4.20); older kernels send all routes.
    setsockopt(nl_socket_get_fd(sockets[1]), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
    return std::unique_ptr<VipRoutes>(new VipRoutes(std::move(twins), sockets[0], sockets[1]));
}

VipRoutes::VipRoutes(TwinsByIndex twins, nl_sock* changes, nl_sock* dumps)
    : twins_(std::move(twins)), changes_(changes), dumps_(dumps) {}

VipRoutes::~VipRoutes() {
    nl_socket_free(changes_);
    nl_socket_free(dumps_);
}

Result<std::vector<VipRoute>> VipRoutes::read() {
    struct Found {
        const TwinsByIndex& twins;
        std::vector<VipRoute> routes;
    };
    constexpr int kAttempts = 4;  // a dump during which the table changes is repeated
    int result = -NLE_DUMP_INTR;
    for (int attempt = 0; attempt < kAttempts && result == -NLE_DUMP_INTR; ++attempt) {
        Found found{twins_, {}};
        for (const int family : {AF_INET, AF_INET6}) {
            rtmsg header{};
            header.rtm_family = static_cast<unsigned char>(family);
            header.rtm_table = RT_TABLE_MAIN;
            header.rtm_protocol = kVipRouteProtocol;
            result = nl_send_simple(dumps_, RTM_GETROUTE, NLM_F_DUMP, &header, sizeof(header));
            if (result >= 0) {
                nl_cb* const callbacks = nl_cb_alloc(NL_CB_DEFAULT);
                nl_cb_set(
                    callbacks, NL_CB_VALID, NL_CB_CUSTOM,
                    [](nl_msg* message, void* argument) {
                        auto& into = *static_cast<Found*>(argument);
                        if (const auto route = vip_route_in(nlmsg_hdr(message), into.twins)) {
                            into.routes.push_back(*route);
                        }
                        return static_cast<int>(NL_OK);
                    },
                    &found);
                result = nl_recvmsgs(dumps_, callbacks);
                nl_cb_put(callbacks);
            }
            // The main table of a family is created with its first route.
            result = result == -NLE_OBJ_NOTFOUND ? 0 : result;
            if (result < 0) {
                break;
            }
        }
        if (result >= 0) {
            std::ranges::sort(found.routes);
            found.routes.erase(std::ranges::unique(found.routes).begin(), found.routes.end());
            return std::move(found.routes);
        }
    }
    return fail(Errc::Unavailable, std::string("VIP routes: netlink dump: ") + nl_geterror(result));
}

std::vector<VipRouteOutcome> VipRoutes::apply(std::span<const VipRouteChange> changes) {
    std::vector<VipRouteOutcome> outcomes(changes.size(), VipRouteOutcome::Unknown);
    for (size_t first = 0; first < changes.size(); first += kBatch) {
        const size_t count = std::min(kBatch, changes.size() - first);
        exchange(changes.subspan(first, count), std::span(outcomes).subspan(first, count));
    }
    return outcomes;
}

// The kernel answers each error, and on request also a success. Only the last message requests it: an
// answer takes a third of the time of a removal.
void VipRoutes::exchange(std::span<const VipRouteChange> changes, std::span<VipRouteOutcome> outcomes) {
    std::vector<uint8_t> batch;
    const uint32_t base = sequence_ + 1;
    for (size_t i = 0; i < changes.size(); ++i) {
        const VipRouteChange& change = changes[i];
        const int ifindex = ifindex_of(change.route.port);
        // Two numbers a change: the first for its neighbour entry, whose errors are ignored, the second for
        // its route.
        sequence_ += 2;
        if (change.kind != VipRouteChange::Kind::Remove) {
            take(batch, neighbour_message(change.route.address, ifindex, RTM_NEWNEIGH), sequence_ - 1, 0);
        }
        take(batch, route_message(change, ifindex), sequence_, i + 1 == changes.size() ? NLM_F_ACK : 0);
    }
    if (!send(batch)) {
        if (changes.size() == 1) {
            outcomes[0] = VipRouteOutcome::Refused;
            return;
        }
        for (size_t i = 0; i < changes.size(); ++i) {  // so that at most single changes fail
            exchange(changes.subspan(i, 1), outcomes.subspan(i, 1));
        }
        return;
    }
    const bool is_complete = receive(sequence_, [&](uint32_t sequence, int error) {
        const uint32_t offset = sequence - base;  // large for an answer to an earlier batch
        if (offset < changes.size() * 2 && offset % 2 == 1) {
            outcomes[offset / 2] = outcome_of(changes[offset / 2].kind, error);
        }
    });
    for (size_t i = 0; is_complete && i < changes.size(); ++i) {
        if (outcomes[i] == VipRouteOutcome::Unknown) {
            outcomes[i] = VipRouteOutcome::Done;
        }
    }
}

void VipRoutes::remove_neighbours(std::span<const VipNeighbour> neighbours) {
    for (size_t first = 0; first < neighbours.size(); first += kBatch) {
        const auto some = neighbours.subspan(first, std::min(kBatch, neighbours.size() - first));
        std::vector<uint8_t> batch;
        for (const VipNeighbour& neighbour : some) {
            take(batch, neighbour_message(neighbour.address, ifindex_of(neighbour.port), RTM_DELNEIGH),
                 ++sequence_, &neighbour == &some.back() ? NLM_F_ACK : 0);
        }
        if (send(batch)) {
            receive(sequence_, [](uint32_t, int) {});
        }
    }
}

bool VipRoutes::send(std::span<const uint8_t> batch) {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    return sendto(nl_socket_get_fd(changes_), batch.data(), batch.size(), 0,
                  reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel)) >= 0;
}

bool VipRoutes::receive(uint32_t last, const std::function<void(uint32_t sequence, int error)>& answered) {
    alignas(nlmsghdr) std::array<uint8_t, kAnswerBytes> answer;
    bool is_lost = false;
    while (true) {
        // After a loss, what is left is taken out, so that the next batch finds an empty buffer.
        const ssize_t length =
            recv(nl_socket_get_fd(changes_), answer.data(), answer.size(), is_lost ? MSG_DONTWAIT : 0);
        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length < 0 && errno == ENOBUFS) {
            is_lost = true;
            continue;
        }
        if (length < 0) {
            return false;
        }
        bool is_last = false;
        int left = static_cast<int>(length);
        for (auto* message = reinterpret_cast<nlmsghdr*>(answer.data()); nlmsg_ok(message, left) != 0;
             message = nlmsg_next(message, &left)) {
            if (message->nlmsg_type == NLMSG_ERROR) {
                answered(message->nlmsg_seq, static_cast<const nlmsgerr*>(nlmsg_data(message))->error);
                is_last = is_last || message->nlmsg_seq == last;
            }
        }
        if (is_last && !is_lost) {
            return true;
        }
    }
}

int VipRoutes::ifindex_of(NicPortId port) const noexcept {
    const auto found = std::ranges::find(twins_, port, &TwinsByIndex::value_type::second);
    return found == twins_.end() ? 0 : found->first;
}

}  // namespace penstock::drivers
