// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/vip_addresses.hpp"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

namespace penstock::drivers {

Result<std::unique_ptr<VipAddresses>> VipAddresses::open(TwinsByIndex twins) {
    nl_sock* const netlink = nl_socket_alloc();
    if (const int result = nl_connect(netlink, NETLINK_ROUTE); result < 0) {
        nl_socket_free(netlink);
        return fail(Errc::Unavailable, std::string("VIP presence: netlink: ") + nl_geterror(result));
    }
    return std::unique_ptr<VipAddresses>(new VipAddresses(std::move(twins), netlink));
}

VipAddresses::VipAddresses(TwinsByIndex twins, nl_sock* netlink)
    : twins_(std::move(twins)), netlink_(netlink) {}

VipAddresses::~VipAddresses() {
    nl_socket_free(netlink_);
}

Result<bool> VipAddresses::add(const route::LocalAddress& vip) {
    if (auto added = change(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, vip); !added || !*added) {
        return added;
    }
    // Checked once for all VIPs. Without the mark, the VIP would count as the host's own address, with open
    // ports and NodePorts.
    if (!keeps_marks_ && !is_marked(vip)) {
        static_cast<void>(remove(vip));
        return fail(Errc::Unsupported,
                    "this kernel does not store the protocol of addresses (IFA_PROTO, Linux 5.18)");
    }
    keeps_marks_ = true;
    return true;
}

Status VipAddresses::remove(const route::LocalAddress& vip) {
    const auto removed = change(RTM_DELADDR, 0, vip);
    return removed ? Status() : std::unexpected(removed.error());
}

Result<bool> VipAddresses::change(int type, int flags, const route::LocalAddress& vip) {
    const bool is_v4 = vip.address.is_v4();
    const size_t skipped = is_v4 ? 12 : 0;
    const auto* const bytes = vip.address.bytes().data() + skipped;
    const auto length = static_cast<int>(vip.address.bytes().size() - skipped);
    ifaddrmsg facts{};
    facts.ifa_family = is_v4 ? AF_INET : AF_INET6;
    facts.ifa_prefixlen = vip.prefix_length;
    facts.ifa_index = static_cast<uint32_t>(ifindex_of(vip.port));
    nl_msg* const message = nlmsg_alloc_simple(type, flags);
    nlmsg_append(message, &facts, sizeof(facts), NLMSG_ALIGNTO);
    nla_put(message, IFA_LOCAL, length, bytes);
    nla_put(message, IFA_ADDRESS, length, bytes);
    if (type == RTM_NEWADDR) {
        nla_put_u8(message, IFA_PROTO, kVipAddressProtocol);
    }
    if (type == RTM_NEWADDR && !is_v4) {
        nla_put_u32(message, IFA_FLAGS, IFA_F_NODAD);
        // Valid forever, but deprecated from the start. Otherwise RFC 6724 would prefer the longest match, a
        // VIP close to the client, as the source of the host's own connections. (For IPv4, Linux uses an
        // interface's first address.)
        ifa_cacheinfo lifetimes{};
        lifetimes.ifa_valid = UINT32_MAX;
        nla_put(message, IFA_CACHEINFO, sizeof(lifetimes), &lifetimes);
    }
    const int result = nl_send_sync(netlink_, message);  // frees it
    const bool is_as_wanted = result == (type == RTM_NEWADDR ? -NLE_EXIST : -NLE_NOADDR);
    if (result < 0 && !is_as_wanted) {
        return fail(Errc::Unavailable,
                    std::string(type == RTM_NEWADDR ? "cannot be added: " : "cannot be removed: ") +
                        nl_geterror(result));
    }
    return !is_as_wanted;
}

bool VipAddresses::is_marked(const route::LocalAddress& vip) {
    struct Search {
        const VipAddresses& of;
        const route::LocalAddress& vip;
        bool found = false;
    } search{*this, vip};
    ifaddrmsg header{};
    header.ifa_family = vip.address.is_v4() ? AF_INET : AF_INET6;
    if (nl_send_simple(netlink_, RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header)) < 0) {
        return false;
    }
    nl_cb* const callbacks = nl_cb_alloc(NL_CB_DEFAULT);
    nl_cb_set(
        callbacks, NL_CB_VALID, NL_CB_CUSTOM,
        [](nl_msg* message, void* argument) {
            auto& asked = *static_cast<Search*>(argument);
            const auto fact = address_in(nlmsg_hdr(message), asked.of.twins_);
            asked.found = asked.found || (fact && fact->is_vip && fact->address == asked.vip);
            return static_cast<int>(NL_OK);
        },
        &search);
    nl_recvmsgs(netlink_, callbacks);
    nl_cb_put(callbacks);
    return search.found;
}

int VipAddresses::ifindex_of(NicPortId port) const noexcept {
    const auto found = std::ranges::find(twins_, port, &TwinsByIndex::value_type::second);
    return found == twins_.end() ? 0 : found->first;
}

}  // namespace penstock::drivers
