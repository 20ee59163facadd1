// SPDX-License-Identifier: Apache-2.0
// Device arguments that are derived: rings, queues and buffers.
#include "drivers/pmd/completion.hpp"

#include <gtest/gtest.h>

#include "drivers/eal/device_string.hpp"

namespace penstock::drivers {
namespace completion_test {

DeviceString parsed(const std::string& text) {
    auto device = DeviceString::parse(text);
    EXPECT_TRUE(device) << text << ": " << (device ? "" : device.error().what);
    return device.value_or(DeviceString{});
}

uint32_t number(const DeviceString& device, const char* key) {
    const auto value = number_argument(device, key, 0);
    return value.value_or(0);
}

// The constraints of the kernel's PACKET_MMAP and of the PMD, checked for every MTU that a port can have.
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

TEST(RandomMac, IsThatOfTheFormerProcess) {
    const MacAddr former{{0x02, 0, 0, 0, 0, 0x2a}};
    const struct {
        const char* given;
        const char* completed;
    } rows[] = {
        {"net_memif0,id=1", "net_memif0,id=1,mac=02:00:00:00:00:2a"},
        {"net_memif0,mac=02:00:00:00:00:01", "net_memif0,mac=02:00:00:00:00:01"},
        {"net_tap0,iface=t", "net_tap0,iface=t,mac=02:00:00:00:00:2a"},
        {"net_ring0", "net_ring0"},
    };
    for (const auto& row : rows) {
        DeviceString device = parsed(row.given);
        ASSERT_TRUE(complete_device(device, {.queues = 1, .mtu = 1500, .mac = former})) << row.given;
        EXPECT_EQ(device.to_string(), row.completed);
    }
}

TEST(MemifBuffers, FollowTheMtu) {
    DeviceString small = parsed("net_memif0,id=1");
    ASSERT_TRUE(complete_device(small, {.queues = 1, .mtu = 1500}));
    EXPECT_EQ(small.to_string(), "net_memif0,id=1");
    DeviceString large = parsed("net_memif0,id=1");
    ASSERT_TRUE(complete_device(large, {.queues = 1, .mtu = 9000}));
    EXPECT_EQ(large.to_string(), "net_memif0,id=1,bsize=16384");
}

}  // namespace completion_test
}  // namespace penstock::drivers
