// SPDX-License-Identifier: Apache-2.0
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

// RSS with all packet types, and with key and table that can be set and read.
constexpr RssExpectation kFullRss40{
    .kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable};
constexpr RssExpectation kFullRss52{
    .kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 52, .table = RssAccess::Settable};

// Rules of net_ice and net_iavf.
constexpr FlowExpectation kIceFlow{.items = FlowExpectation::kAllItems,
                                   .actions = FlowExpectation::kQueue | FlowExpectation::kDrop |
                                              FlowExpectation::kMark | FlowExpectation::kCount |
                                              FlowExpectation::kRss | FlowExpectation::kPassthru};

// AF_XDP holds buffers in its fill ring before the first frame arrives, and in its completion ring after the
// last frame has left (ETH_AF_XDP_DFLT_NUM_DESCS each).
constexpr uint32_t kXdpRing = 2048;
// An XDP buffer may not cross a page.
constexpr uint32_t kXdpObjectMax = 4096;

constexpr Quirk kAfPacketQuirks[] = {
    {"the kernel reassembles IPv4 fragments before the driver receives them, and truncates the datagram to a "
     "slot of the ring; longer datagrams are dropped as frame_shorter_than_ip, unless framesz has room for "
     "them",
     "drivers/net/af_packet/rte_eth_af_packet.c, PACKET_FANOUT_FLAG_DEFRAG"},
    {"only the kernel counts the frames that the ring had no room for; penstockd reads the count from the "
     "sockets (RX-MISSED)",
     "packet(7), PACKET_STATISTICS"},
    {"the kernel's own stack receives each frame as well; penstockd prevents that by a netdev ingress drop",
     "run here"},
    {"reports 1,518 as its largest frame for any slot size, so ethdev refuses a larger MTU",
     "drivers/net/af_packet/rte_eth_af_packet.c, eth_dev_info()"},
};

constexpr Quirk kAfXdpQuirks[] = {
    {"the interface's own RSS chooses the queue; many NICs do not hash UDP ports unless configured by "
     "`ethtool -N DEV rx-flow-hash udp4 sdfn`",
     "ethtool(8)"},
    {"zero-copy if the interface's kernel driver supports it, copies otherwise",
     "doc/guides/nics/af_xdp.rst, force_copy"},
    {"the page size limits the MTU", "doc/guides/nics/af_xdp.rst, Limitations"},
    {"a port that is closed leaves its sockets open, which Penstock closes; otherwise no other process could "
     "have its queues until the end of this one",
     "drivers/net/af_xdp/rte_eth_af_xdp.c, eth_dev_close()"},
};

constexpr Quirk kBondingQuirks[] = {
    {"LACP (mode=4, 802.3ad) must send and receive at least every 100 ms, even without traffic, which "
     "workers do not do: refused",
     "doc/guides/prog_guide/link_bonding_poll_mode_drv_lib.rst, Link Aggregation 802.3AD"},
    {"members join when the bond is configured for the first time; only then does it report their common "
     "capabilities",
     "drivers/net/bonding/rte_eth_bond_pmd.c, bond_ethdev_configure()"},
    {"packet types, key length and table size are the minimum over the members; all members get the same key "
     "and table, so a packet reaches the same queue through any of them",
     "drivers/net/bonding/rte_eth_bond_api.c, eth_bond_slave_inherit_dev_info_rx_next(); rte_eth_bond_pmd.c, "
     "slave_configure()"},
    {"key and table that are read are the bond's own copies",
     "drivers/net/bonding/rte_eth_bond_pmd.c, bond_ethdev_rss_hash_conf_get()"},
};

constexpr Quirk kEmQuirks[] = {
    {"offers two receive queues, but no RSS: all frames arrive on the first queue",
     "drivers/net/e1000/em_ethdev.c, eth_em_infos_get(); em_rxtx.c, eth_em_rx_init()"},
    {"an e1000e raised no interrupt when the link went down, so the link interrupt is not requested",
     "suite vm, QEMU 7.2"},
};

constexpr Quirk kEnaQuirks[] = {
    {"reports key and packet types only with the RSS hash offload on",
     "drivers/net/ena/ena_rss.c, ena_rss_hash_conf_get()"},
    {"the device's own key cannot be read, only a key that was set",
     "drivers/net/ena/ena_rss.c, ena_get_rss_hash_key()"},
    {"the device stores the key in reverse byte order; the driver reverses it",
     "drivers/net/ena/ena_rss.c, ena_reorder_rss_hash_key()"},
    {"if the device does not report its packet types, the driver reports all four",
     "drivers/net/ena/ena_rss.c, ena_rss_hash_conf_get()"},
    {"vfio-pci of most kernels maps the device without write combining, which makes transmission slow on "
     "recent instances",
     "doc/guides/nics/ena.rst, Prerequisites"},
};

constexpr Quirk kI40eQuirks[] = {
    {"uses its simple transmit path only if no transmit offload is requested",
     "drivers/net/i40e/i40e_rxtx.c, i40e_set_tx_function_flag()"},
    {"the hash function is a setting of the whole card; the driver sets it to Toeplitz when a port starts, "
     "except with support-multi-driver=1",
     "drivers/net/i40e/i40e_ethdev.c, i40e_pf_global_rss_reset()"},
    {"symmetric hashing and simple xor can only be set by rte_flow, which Penstock never does",
     "drivers/net/i40e/i40e_hash.c, i40e_hash_config_func()"},
    {"a rule of its flow director matches a whole L4 port only, so no rule can cover a worker's SNAT ports",
     "drivers/net/i40e/i40e_flow.c, i40e_flow_parse_fdir_pattern()"},
};

constexpr Quirk kIavfQuirks[] = {
    {"the host's driver limits the key, table and packet types of a virtual function",
     "drivers/net/iavf/iavf_ethdev.c, iavf_dev_info_get()"},
    {"if the host does not let a function choose its packet types, the driver logs a warning and reports the "
     "requested ones",
     "drivers/net/iavf/iavf_ethdev.c, iavf_config_rss_hf()"},
};

constexpr Quirk kIceQuirks[] = {
    {"without its DDP package (/lib/firmware/intel/ice/ddp) it starts only with safe-mode-support=1, and "
     "then has no RSS",
     "doc/guides/nics/ice.rst, Safe Mode Support"},
    {"a rule of its flow director matches a whole L4 port only, so no rule can cover a worker's SNAT ports",
     "drivers/net/ice/ice_fdir_filter.c, ice_fdir_parse_pattern()"},
    {"symmetric Toeplitz and simple xor can only be set by rte_flow, which Penstock never does",
     "drivers/net/ice/ice_hash.c, ice_hash_parse_action()"},
};

constexpr Quirk kIgbQuirks[] = {
    {"82575 stores a queue two bits higher in its table than the driver's table functions assume",
     "drivers/net/e1000/igb_rxtx.c, igb_rss_configure()"},
    {"QEMU before 8.0 does not emulate this NIC", "QEMU 8.0, hw/net/igb.c"},
};

constexpr Quirk kIxgbeQuirks[] = {
    {"uses its simple transmit path only if no transmit offload is requested",
     "drivers/net/ixgbe/ixgbe_rxtx.c, ixgbe_set_tx_function()"},
    {"the table can be set only once the port is started",
     "drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_dev_rss_reta_update()"},
    {"all rules of its flow director share one mask, and its n-tuple filters match whole ports",
     "drivers/net/ixgbe/ixgbe_flow.c, cons_parse_ntuple_filter()"},
};

constexpr Quirk kIxgbeVfQuirks[] = {
    {"virtual functions of 82599 and X540 share key and table with their port, and can neither set nor read "
     "them",
     "doc/guides/nics/intel_vf.rst; drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_rss_update_sp()"},
};

constexpr Quirk kMlx5Quirks[] = {
    {"if the number of queues is a power of two, its table has one entry per queue; otherwise the largest "
     "size of the device",
     "drivers/net/mlx5/mlx5_ethdev.c, mlx5_dev_configure_rss_reta()"},
    {"setting the table of a started port stops and starts it",
     "drivers/net/mlx5/mlx5_rss.c, mlx5_dev_rss_reta_update()"},
    {"without isolation it takes all frames for its MAC address, and the kernel interface receives none of "
     "them",
     "doc/guides/nics/mlx5.rst, flow isolated mode"},
    {"lpbk_mode does not loop frames back; it prevents a port from receiving its own multicast",
     "drivers/net/mlx5/mlx5_devx.c, mlx5_devx_tir_attr_set()"},
    {"needs ib_uverbs and mlx5_ib in the kernel, and rdma-core", "doc/guides/platform/mlx5.rst"},
};

constexpr Quirk kNullQuirks[] = {
    {"key and table can be set and read, but have no effect",
     "drivers/net/null/rte_eth_null.c, eth_rss_reta_update()"},
};

constexpr Quirk kTapQuirks[] = {
    {"computes requested transmit checksums in software, over the whole packet",
     "drivers/net/tap/rte_eth_tap.c, tap_tx_l4_cksum()"},
    {"rules become tc flower filters of the kernel, which must support them", "drivers/net/tap/tap_flow.c"},
    {"a rule for bits of an L4 port is validated, but cannot be created: only whole ports are matched",
     "drivers/net/tap/tap_flow.c, tap_flow_create_tcp()"},
    {"its RSS is an eBPF program of a rule with a fixed key; rte_eth_conf has no effect on it",
     "doc/guides/nics/tap.rst, RSS specifics"},
};

constexpr Quirk kVirtioQuirks[] = {
    {"with the L4 receive checksum offload, packets of the same host arrive without a checksum "
     "(VIRTIO_NET_F_GUEST_CSUM); Penstock does not request it, so their checksums are complete",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_configure(); virtio_rxtx.c, virtio_rx_offload()"},
    {"RSS only if the host offers VIRTIO_NET_F_RSS (QEMU: mq=on,rss=on, with vhost off or a vhost that "
     "supports RSS); otherwise the host chooses the queue of each packet",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_info_get()"},
    {"once a driver accepts VIRTIO_NET_F_CTRL_VLAN, which this one always does, the host drops the frames of "
     "VLANs that were not configured; a promiscuous port receives them",
     "drivers/net/virtio/virtio_ethdev.h, VIRTIO_PMD_DEFAULT_GUEST_FEATURES; virtio_ethdev.c, "
     "virtio_vlan_filter_set()"},
    {"the hash is not stored in mbufs", "drivers/net/virtio/virtio_rxtx.c, virtio_rx_offload()"},
    {"key and table that are read are the driver's own copies: the device does not report them",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_rss_hash_conf_get()"},
};

constexpr Quirk kVmxnet3Quirks[] = {
    {"IPv4 header checksums are not verified on receipt; workers verify them",
     "drivers/net/vmxnet3/vmxnet3_ethdev.c, VMXNET3_RX_OFFLOAD_CAP"},
    {"the key is set by the configuration, and cannot be read",
     "drivers/net/vmxnet3/vmxnet3_ethdev.c, vmxnet3_eth_dev_ops"},
    {"UDP is hashed since version 4 of the device",
     "drivers/net/vmxnet3/vmxnet3_ethdev.c, vmxnet3_dev_info_get()"},
    {"the table has four entries per queue, and its size is reported only after RSS is configured",
     "drivers/net/vmxnet3/vmxnet3_rxtx.c, vmxnet3_rss_configure()"},
    {"at least 512 transmit descriptors", "drivers/net/vmxnet3/vmxnet3_ring.h, VMXNET3_DEF_TX_RING_SIZE"},
    {"no interrupt was raised when the link went down, so the link interrupt is not requested",
     "suite vm, QEMU 7.2"},
};

// One row for each PMD, in alphabetical order.
constexpr PmdProfile kProfiles[] = {
    {
        .driver = "net_af_packet",
        .family = "any Linux interface, by packet sockets",
        .binding = Binding::Interface,
        .spread = RxSpread::Unsteady,
        .spread_reason = "the kernel's fanout moves a flow to another queue when its own is full",
        .kernel_hears = true,
        .opens_twice = true,
        .counts_no_missed = true,
        .uses_interface = true,
        .needs_interface = true,
        .mtu_by_interface = true,
        .quirks = kAfPacketQuirks,
    },
    // Receives frames in the driver, before the kernel's stack, so that no guard is needed.
    {
        .driver = "net_af_xdp",
        .family = "any Linux interface, by AF_XDP sockets",
        .binding = Binding::Interface,
        .spread = RxSpread::None,
        .spread_reason = "the interface's own RSS chooses the queue, and the driver cannot read it",
        .probes_twice = true,
        .releases_queues_late = true,
        .uses_interface = true,
        .needs_interface = true,
        .mtu_by_interface = true,
        .mbufs_per_queue = 2 * kXdpRing,
        .mbuf_object_max = kXdpObjectMax,
        .quirks = kAfXdpQuirks,
    },
    // Several ports as one (link aggregation).
    {
        .driver = "net_bonding",
        .family = "bonds of other ports",
        .binding = Binding::Software,
        .rss = kFullRss40,
        .quirks = kBondingQuirks,
    },
    // Intel 82540 to 82574, and e1000 and e1000e of virtual machines.
    {
        .driver = "net_e1000_em",
        .family = "Intel 8254x, 82574; e1000 and e1000e of virtual machines",
        .silent_link = true,
        .quirks = kEmQuirks,
    },
    // Amazon's Elastic Network Adapter.
    {
        .driver = "net_ena",
        .family = "Amazon ENA",
        .rss = kFullRss40,
        .rss_reported_with_hash = true,
        .quirks = kEnaQuirks,
    },
    {
        .driver = "net_i40e",
        .family = "Intel X710, XL710, XXV710, X722",
        .rss = kFullRss52,
        .other_hash_reason =
            "with support-multi-driver the card uses the hash function that another driver configured, which "
            "cannot be read",
        .other_hash_if = "support-multi-driver",
        .flow = {.items = FlowExpectation::kAllItems,
                 .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                            FlowExpectation::kRss | FlowExpectation::kPassthru},
        .loops_back = true,
        .quirks = kI40eQuirks,
    },
    // A virtual function of ice or i40e.
    {
        .driver = "net_iavf",
        .family = "virtual functions of Intel 700 and 800 series",
        .rss = kFullRss52,
        .flow = kIceFlow,
        .quirks = kIavfQuirks,
    },
    // Intel E810 and E820 series.
    {
        .driver = "net_ice",
        .family = "Intel E810, E822, E823",
        .rss = kFullRss52,
        .flow = kIceFlow,
        .quirks = kIceQuirks,
    },
    {
        .driver = "net_e1000_igb",
        .family = "Intel 82576, I350, I210, I211",
        .rss = kFullRss40,
        .flow = {.items = FlowExpectation::kEth | FlowExpectation::kIpv4 | FlowExpectation::kIpv6 |
                          FlowExpectation::kTcp | FlowExpectation::kUdp,
                 .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kRss},
        .quirks = kIgbQuirks,
    },
    {
        .driver = "net_ixgbe",
        .family = "Intel 82599, X520, X540, X550",
        .rss = kFullRss40,
        .flow = {.items = FlowExpectation::kAllItems,
                 .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                            FlowExpectation::kRss},
        .loops_back = true,
        .quirks = kIxgbeQuirks,
    },
    // Listed separately, because the profile is found by the start of the name: a virtual function does not
    // loop back.
    {
        .driver = "net_ixgbe_vf",
        .family = "virtual functions of Intel 82599, X540, X550",
        .rss = kFullRss40,
        // X550's functions have their own, but cannot be distinguished here.
        .other_hash_reason = "a virtual function may share key and table with its port, and cannot read them",
        .quirks = kIxgbeVfQuirks,
    },
    {
        .driver = "net_memif",
        .family = "shared memory with another process",
        .binding = Binding::Software,
        .spread = RxSpread::None,
        .spread_reason = "the other process chooses the queue",
        .probes_twice = true,  // with role=client
    },
    // The kernel driver stays, and both see the port.
    {
        .driver = "mlx5",
        .family = "NVIDIA ConnectX-4 to -7, BlueField",
        .binding = Binding::Bifurcated,
        .rss = kFullRss40,
        .flow = {.items = FlowExpectation::kAllItems,
                 .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                            FlowExpectation::kCount | FlowExpectation::kRss,
                 .masks_ports = true},
        .quirks = kMlx5Quirks,
    },
    // Receives empty packets and discards all packets that are sent.
    {
        .driver = "net_null",
        .family = "nothing",
        .binding = Binding::Software,
        .spread = RxSpread::None,
        .spread_reason = "its RSS can be set and read, but has no effect",
        .rss = kFullRss40,
        .quirks = kNullQuirks,
    },
    // pcap files, or an interface through libpcap.
    {
        .driver = "net_pcap",
        .family = "pcap files, libpcap",
        .binding = Binding::Interface,
        .spread = RxSpread::None,
        .spread_reason = "libpcap does not spread flows over queues",
        .kernel_hears = true,  // with iface=; with files there is no interface to guard
        .uses_interface = true,
    },
    {
        .driver = "net_ring",
        .family = "rings in memory",
        .binding = Binding::Software,
        .spread = RxSpread::None,
        .spread_reason = "the writer of the ring chooses the queue",
    },
    // An interface that the kernel makes.
    {
        .driver = "net_tap",
        .family = "TAP",
        .binding = Binding::Software,
        .spread = RxSpread::Unsteady,
        .spread_reason = "the kernel sends a flow to the TAP queue that last sent a packet of it",
        .flow = {.items = FlowExpectation::kAllItems,
                 .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kRss |
                            FlowExpectation::kPassthru},
        .probes_twice = true,  // without remote
        .quirks = kTapQuirks,
    },
    // The host's side of a virtual machine's virtio-net, over a socket.
    {
        .driver = "net_vhost",
        .family = "vhost-user",
        .binding = Binding::Software,
        .spread = RxSpread::None,
        .spread_reason = "the guest chooses the queue",
    },
    // virtio-net of a virtual machine.
    {
        .driver = "net_virtio",
        .family = "virtio-net (PCI)",
        .rss = kFullRss40,
        .filters_vlans = true,
        .quirks = kVirtioQuirks,
    },
    // virtio towards a vhost-user socket or the kernel's vhost-net.
    {
        .driver = "net_virtio_user",
        .family = "virtio-user",
        .binding = Binding::Software,
        .spread = RxSpread::None,
        .spread_reason = "the vhost side chooses the queue",
    },
    // VMware's paravirtual NIC.
    {
        .driver = "net_vmxnet3",
        .family = "VMware vmxnet3",
        .rss =
            {.kinds = kAllRssKinds, .key = RssAccess::Hidden, .key_bytes = 40, .table = RssAccess::Settable},
        .silent_link = true,
        .quirks = kVmxnet3Quirks,
    },
};

constexpr PmdProfile kUnknown{};

}  // namespace

const PmdProfile& pmd_profile(std::string_view driver) noexcept {
    // net_virtio_user0 also begins with net_virtio: the longest name wins.
    const PmdProfile* best = &kUnknown;
    for (const PmdProfile& profile : kProfiles) {
        if (driver.starts_with(profile.driver) && profile.driver.size() > best->driver.size()) {
            best = &profile;
        }
    }
    return *best;
}

std::span<const PmdProfile> pmd_profiles() noexcept {
    return kProfiles;
}

}  // namespace penstock::drivers
