// SPDX-License-Identifier: Apache-2.0
// Device strings: PCI addresses, virtual devices and bonds.
#include "drivers/eal/device_string.hpp"

#include <gtest/gtest.h>

namespace penstock::drivers {
namespace device_string_test {

DeviceString parsed(const std::string& text) {
    auto device = DeviceString::parse(text);
    EXPECT_TRUE(device) << text << ": " << (device ? "" : device.error().what);
    return device.value_or(DeviceString{});
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

}  // namespace device_string_test
}  // namespace penstock::drivers
