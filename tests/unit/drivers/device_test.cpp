// SPDX-License-Identifier: Apache-2.0
// Device strings and the arguments that are derived for them.
#include <gtest/gtest.h>

#include <bit>

#include "drivers/eal/device_string.hpp"
#include "drivers/host/interface_address.hpp"
#include "drivers/pmd/completion.hpp"

namespace penstock::drivers {
namespace device_test {

DeviceString parsed(const std::string& text) {
    auto device = DeviceString::parse(text);
    EXPECT_TRUE(device) << text << ": " << (device ? "" : device.error().what);
    return device.value_or(DeviceString{});
}

uint32_t number(const DeviceString& device, const char* key) {
    const auto value = number_argument(device, key, 0);
    return value.value_or(0);
}

TEST(DeviceString, TellsPciFromVdev) {
    const struct {
        const char* text;
        bool is_pci;
        const char* name;
        const char* driver;
        const char* interface;
    } rows[] = {
        {"0000:03:00.0", true, "0000:03:00.0", "", ""},
        {"03:00.1", true, "0000:03:00.1", "", ""},
        {"0000:03:00.0,dv_flow_en=1", true, "0000:03:00.0", "", ""},
        {"net_af_packet0,iface=veth0", false, "net_af_packet0", "net_af_packet", "veth0"},
        {"net_af_packet_lan,iface=eth1,qpairs=2", false, "net_af_packet_lan", "net_af_packet", "eth1"},
        {"net_af_xdp1,iface=veth1", false, "net_af_xdp1", "net_af_xdp", "veth1"},
        {"net_tap0,iface=dtap0", false, "net_tap0", "net_tap",
         ""},  // its interface is created by the PMD, on the far side
        {"net_virtio_user3,path=/dev/vhost-net", false, "net_virtio_user3", "net_virtio_user", ""},
        {"net_pcap0,iface=eth2", false, "net_pcap0", "net_pcap", "eth2"},
        {"net_pcap0,rx_pcap=in.pcap", false, "net_pcap0", "net_pcap", ""},
        {"net_null0", false, "net_null0", "net_null", ""},
        {"net_unheard_of7,x=y", false, "net_unheard_of7", "net_unheard_of", ""},
    };
    for (const auto& row : rows) {
        const DeviceString device = parsed(row.text);
        EXPECT_EQ(device.is_pci, row.is_pci) << row.text;
        EXPECT_EQ(device.name, row.name) << row.text;
        EXPECT_EQ(device.driver, row.driver) << row.text;
        EXPECT_EQ(device.kernel_interface(), row.interface) << row.text;
        if (device.name.size() == std::string(row.text).find(',')) {
            EXPECT_EQ(device.to_string(), row.text);
        }
    }
}

TEST(DeviceString, RefusesByName) {
    const struct {
        const char* text;
        const char* says;
    } rows[] = {
        {"eth0", "neither a PCI address"},
        {"", "neither a PCI address"},
        {"0000:03:00.8", "neither a PCI address"},
        {"net_af_packet0", "needs iface=INTERFACE"},
        {"net_af_packet0,iface=", "is not NAME=VALUE"},
        {"net_af_packet0,iface=a,", "is not NAME=VALUE"},
        {"net_af_packet0,iface=a,iface=b", "iface is given twice"},
        {"net_bonding0,mode=1,mode=2", "mode is given twice"},
        {"net_ring0,slave=a,slave=b", "slave is given twice"},
        {"net_bonding0,mode=0,member=net_ring0",
         "mode: balance-rr (0) is unsuitable for a gateway: it sends a flow's packets by all members"},
        {"net_bonding0,mode=broadcast,member=net_ring0", "mode: broadcast (3)"},
        {"net_bonding0,mode=4,member=net_ring0",
         "mode: 802.3ad (4) is unsuitable for a gateway: its LACP must be served every 100 ms"},
        {"net_bonding0,mode=balance-tlb,member=net_ring0", "mode: balance-tlb (5)"},
        {"net_bonding0,mode=6,member=net_ring0", "mode: balance-alb (6)"},
        {"net_bonding0,mode=7,member=net_ring0", "mode: 7 is neither active-backup (1) nor balance-xor (2)"},
        {"net_bonding0,mode=1", "member: a bond needs at least one"},
        {"net_bonding0,member=03:00.0,slave=0000:03:00.0", "member: 0000:03:00.0 is given twice"},
    };
    for (const auto& row : rows) {
        const auto device = DeviceString::parse(row.text);
        ASSERT_FALSE(device) << row.text;
        EXPECT_EQ(device.error().code, Errc::InvalidArgument) << row.text;
        EXPECT_NE(device.error().what.find(row.says), std::string::npos) << device.error().what;
    }
}

// The constraints of the kernel's PACKET_MMAP and of the PMD, checked for every MTU that a port can have.
TEST(DeviceString, ABondNamesEachOfItsMembers) {
    const auto bond = DeviceString::parse(
        "net_bonding0,mode=balance-xor,member=03:00.0,slave=0000:03:00.1,member=net_ring0");
    ASSERT_TRUE(bond) << bond.error().what;
    EXPECT_EQ(bond->members(), (std::vector<std::string>{"0000:03:00.0", "0000:03:00.1", "net_ring0"}));
    EXPECT_EQ(bond->arguments_text(),
              "mode=2,slave=03:00.0,slave=0000:03:00.1,slave=net_ring0,xmit_policy=l34");
    EXPECT_EQ(DeviceString::parse("net_bonding0,mode=2,member=net_ring0,xmit_policy=l23")->arguments_text(),
              "mode=2,slave=net_ring0,xmit_policy=l23");
    EXPECT_EQ(DeviceString::parse("net_bonding0,member=net_ring0,member=net_ring1")->arguments_text(),
              "slave=net_ring0,slave=net_ring1,mode=1")
        << "the default needs nothing of the switch";
    EXPECT_TRUE(DeviceString::parse("net_ring0,slave=a")->members().empty());
}

TEST(AfPacketRing, EveryMtuGetsAConsistentRing) {
    for (uint32_t mtu = 68; mtu <= 32'000; mtu += mtu < 10'000 ? 1 : 97) {
        DeviceString device = parsed("net_af_packet0,iface=veth0");
        const auto completed = complete_af_packet(device, {.queues = 2, .mtu = static_cast<uint16_t>(mtu)});
        ASSERT_TRUE(completed) << mtu << ": " << completed.error().what;
        const uint32_t slot = number(device, "framesz");
        const uint32_t block = number(device, "blocksz");
        const uint32_t slots = number(device, "framecnt");
        ASSERT_GE(slot, 66 + 14 + 8 + mtu) << "frames are cut at MTU " << mtu;
        ASSERT_EQ(slot % 16, 0u) << mtu;               // TPACKET_ALIGNMENT
        ASSERT_EQ(block % 4096, 0u) << mtu;            // PAGE_SIZE
        ASSERT_EQ(block % slot, 0u) << mtu;            // the PMD assumes slot i at i x framesz
        ASSERT_EQ(slots % (block / slot), 0u) << mtu;  // the kernel: frame_nr = frames_per_block x block_nr
        ASSERT_GE(slots, 256u) << mtu;
        ASSERT_EQ(completed->buffer_bytes, slot - 32)
            << mtu;  // the value that eth_rx_queue_setup compares with the mbuf
    }
}

TEST(AfPacketRing, CompletesWhatIsMissing) {
    const struct {
        const char* name;
        const char* given;
        unsigned queues;
        uint16_t mtu;
        const char* completed;
    } rows[] = {
        {"default", "net_af_packet0,iface=v", 1, 1500,
         "net_af_packet0,iface=v,qpairs=1,framesz=2048,blocksz=65536,framecnt=2048,qdisc_bypass=1"},
        {"largest MTU of a 2 KB slot", "net_af_packet0,iface=v", 2, 1960,
         "net_af_packet0,iface=v,qpairs=2,framesz=2048,blocksz=65536,framecnt=2048,qdisc_bypass=1"},
        {"one byte more", "net_af_packet0,iface=v", 2, 1961,
         "net_af_packet0,iface=v,qpairs=2,framesz=4096,blocksz=65536,framecnt=2048,qdisc_bypass=1"},
        {"jumbo", "net_af_packet0,iface=v", 4, 9000,
         "net_af_packet0,iface=v,qpairs=4,framesz=16384,blocksz=65536,framecnt=512,qdisc_bypass=1"},
        {"the operator's queues and bypass stay", "net_af_packet0,iface=v,qpairs=3,qdisc_bypass=0", 4, 1500,
         "net_af_packet0,iface=v,qpairs=3,qdisc_bypass=0,framesz=2048,blocksz=65536,framecnt=2048"},
        {"the operator's slots lead", "net_af_packet0,iface=v,framesz=8192,blocksz=8192", 1, 1500,
         "net_af_packet0,iface=v,framesz=8192,blocksz=8192,qpairs=1,framecnt=1024,qdisc_bypass=1"},
        {"more workers than the PMD has rings", "net_af_packet0,iface=v", 40, 1500,
         "net_af_packet0,iface=v,qpairs=16,framesz=2048,blocksz=65536,framecnt=2048,qdisc_bypass=1"},
    };
    for (const auto& row : rows) {
        DeviceString device = parsed(row.given);
        const auto completed = complete_device(device, {.queues = row.queues, .mtu = row.mtu});
        ASSERT_TRUE(completed) << row.name;
        EXPECT_EQ(device.to_string(), row.completed) << row.name;
    }
}

TEST(AfPacketRing, RefusesWhatWouldCutFramesOrMislaySlots) {
    const struct {
        const char* given;
        uint16_t mtu;
        const char* says;
    } rows[] = {
        {"net_af_packet0,iface=v,framesz=2048", 9000, "cuts frames of MTU 9000"},
        {"net_af_packet0,iface=v,framesz=3072", 1500, "is not a multiple of both framesz=3072"},
        {"net_af_packet0,iface=v,framesz=2048,blocksz=2048", 1500, "the page size"},
        {"net_af_packet0,iface=v,framecnt=33", 1500, "is not a multiple of blocksz / framesz"},
        {"net_af_packet0,iface=v,framesz=2k", 1500, "framesz=2k is not a number"},
        {"net_af_packet0,iface=v,blocksz=0", 1500, "blocksz=0 is not a number greater than 0"},
    };
    for (const auto& row : rows) {
        DeviceString device = parsed(row.given);
        const auto completed = complete_device(device, {.queues = 1, .mtu = row.mtu});
        ASSERT_FALSE(completed) << row.given;
        EXPECT_NE(completed.error().what.find(row.says), std::string::npos) << completed.error().what;
    }
}

TEST(AfXdpQueues, FollowTheInterfacesChannels) {
    const struct {
        const char* name;
        const char* given;
        unsigned queues;
        unsigned channels;
        const char* completed;
    } rows[] = {
        {"veth reports none", "net_af_xdp0,iface=v", 4, 0, "net_af_xdp0,iface=v,queue_count=1"},
        {"fewer workers than channels", "net_af_xdp0,iface=v", 2, 8, "net_af_xdp0,iface=v,queue_count=2"},
        {"fewer channels than workers", "net_af_xdp0,iface=v", 8, 4, "net_af_xdp0,iface=v,queue_count=4"},
        {"some left to the kernel", "net_af_xdp0,iface=v,start_queue=2", 8, 4,
         "net_af_xdp0,iface=v,start_queue=2,queue_count=2"},
        {"first queue named", "net_af_xdp0,iface=v,start_queue=0", 1, 4,
         "net_af_xdp0,iface=v,start_queue=0,queue_count=1"},
    };
    for (const auto& row : rows) {
        DeviceString device = parsed(row.given);
        const auto completed =
            complete_device(device, {.queues = row.queues, .mtu = 1500, .interface_channels = row.channels});
        ASSERT_TRUE(completed) << row.name;
        EXPECT_EQ(device.to_string(), row.completed) << row.name;
        EXPECT_EQ(completed->buffer_bytes, 1522u) << row.name;
    }
    DeviceString beyond = parsed("net_af_xdp0,iface=v,start_queue=4");
    EXPECT_FALSE(complete_device(beyond, {.queues = 1, .mtu = 1500, .interface_channels = 4}));
}

TEST(MemifBuffers, FollowTheMtu) {
    DeviceString small = parsed("net_memif0,id=1");
    ASSERT_TRUE(complete_device(small, {.queues = 1, .mtu = 1500}));
    EXPECT_EQ(small.to_string(), "net_memif0,id=1");
    DeviceString large = parsed("net_memif0,id=1");
    ASSERT_TRUE(complete_device(large, {.queues = 1, .mtu = 9000}));
    EXPECT_EQ(large.to_string(), "net_memif0,id=1,bsize=16384");
}

TEST(InterfaceAddress, ReadsWhatAnInterfaceCanCarry) {
    const auto v4 = InterfaceAddress::parse("192.0.2.1/24");
    ASSERT_TRUE(v4);
    EXPECT_EQ(v4->address, IpAddr::v4(192, 0, 2, 1));
    EXPECT_EQ(v4->prefix_length, 24);
    EXPECT_EQ(v4->to_string(), "192.0.2.1/24");
    const auto v6 = InterfaceAddress::parse("2001:db8::1/64");
    ASSERT_TRUE(v6);
    EXPECT_EQ(v6->to_string(), "2001:db8::1/64");
    for (const char* text :
         {"192.0.2.1", "192.0.2.1/33", "192.0.2.1/", "192.0.2.1/x", "192.0.2.1/24/1", "2001:db8::1/129",
          "224.0.0.1/4", "127.0.0.1/8", "0.0.0.0/0", "::/0", "host/24", ""}) {
        EXPECT_FALSE(InterfaceAddress::parse(text)) << text;
    }
}

}  // namespace device_test
}  // namespace penstock::drivers
