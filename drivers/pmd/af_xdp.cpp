// net_af_xdp: receives frames in the driver, before the kernel's stack, so that no guard is needed. It has as
// many queues as the interface has combined channels. veth reports none and gets one, whatever its real
// number of queues. A buffer with its mempool header must fit in one page, which limits the MTU (3,050 with
// our headroom and steps of 1 KB; mempool.cpp).
#include <algorithm>

#include "drivers/pmd/completion.hpp"
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

// AF_XDP holds buffers in its fill ring before the first frame arrives, and in its completion ring after the
// last frame has left (ETH_AF_XDP_DFLT_NUM_DESCS each).
constexpr uint32_t kXdpRing = 2048;
// An XDP buffer may not cross a page.
constexpr uint32_t kXdpObjectMax = 4096;

constexpr Quirk kAfXdpQuirks[] = {
    {"the interface's own RSS chooses the queue; many NICs do not hash UDP ports unless configured by "
     "`ethtool -N DEV rx-flow-hash udp4 sdfn`",
     "ethtool(8)"},
    {"zero-copy if the interface's kernel driver supports it, copies otherwise",
     "doc/guides/nics/af_xdp.rst, force_copy"},
    {"the page size limits the MTU", "doc/guides/nics/af_xdp.rst, Limitations"},
};

}  // namespace

constinit const PmdProfile kAfXdpProfile = {
    .driver = "net_af_xdp",
    .family = "any Linux interface, by AF_XDP sockets",
    .binding = Binding::Interface,
    .spread = RxSpread::None,
    .spread_reason = "the interface's own RSS chooses the queue, and the driver cannot read it",
    .uses_interface = true,
    .needs_interface = true,
    .mtu_by_interface = true,
    .mbufs_per_queue = 2 * kXdpRing,
    .mbuf_object_max = kXdpObjectMax,
    .quirks = kAfXdpQuirks,
};

Result<CompletionResult> complete_af_xdp(DeviceString& device, const CompletionFacts& facts) {
    const unsigned channels = std::max(1u, facts.interface_channels);
    const auto first = device.argument("start_queue") == nullptr ? Result<uint32_t>(0)
                                                                 : number_argument(device, "start_queue", 0);
    if (!first && *device.argument("start_queue") != "0") {
        return std::unexpected(first.error());
    }
    const unsigned skipped = first.value_or(0);
    if (skipped >= channels) {
        return fail(Errc::InvalidArgument, device.name + ": start_queue=" + std::to_string(skipped) +
                                               ", but the interface has " + std::to_string(channels) +
                                               " channels");
    }
    device.complete("queue_count", std::to_string(std::min(facts.queues, channels - skipped)));
    return CompletionResult{frame_bytes(facts.mtu)};
}

}  // namespace penstock::drivers
