// SPDX-License-Identifier: Apache-2.0
#include "control/host/pmd_library.hpp"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.hpp"

namespace penstock::host {
namespace pmd_library_test {

// As in DPDK 22.11's librte_net_ixgbe.so, shortened.
const std::string kIxgbe =
    "bytes\x01PMD_INFO_STRING= {\"name\": \"net_ixgbe_vf\", \"params\": \"pflink_fullchk=<0|1>\", \"kmod\": "
    "\"* igb_uio | "
    "vfio-pci\", \"pci_ids\": [[32902, 4333, 65535, 65535], [32902, 5422, 65535, 65535]]}" +
    std::string("\0", 1) +
    "PMD_INFO_STRING= {\"name\": \"net_ixgbe\", \"kmod\": \"* igb_uio | uio_pci_generic | vfio-pci\", "
    "\"pci_ids\": [[32902, "
    "4278, 65535, 65535]]}" +
    std::string("\0", 1);

TEST(PmdLibrary, DriversAreReadFromTheBytesOfALibrary) {
    const auto infos = pmd_infos(kIxgbe);
    ASSERT_EQ(infos.size(), 2U);
    EXPECT_EQ(infos[0].name, "net_ixgbe_vf");
    EXPECT_EQ(infos[0].kernel_modules, "* igb_uio | vfio-pci");
    EXPECT_EQ(infos[0].ids, (std::vector<PciId>{{0x8086, 0x10ed}, {0x8086, 0x152e}}));
    EXPECT_TRUE(infos[0].wants_vfio());
    EXPECT_EQ(infos[1].ids, (std::vector<PciId>{{0x8086, 0x10b6}}));
    const auto virtual_device = pmd_infos("PMD_INFO_STRING= {\"name\": \"net_null\", \"pci_ids\": []}");
    ASSERT_EQ(virtual_device.size(), 1U);
    EXPECT_TRUE(virtual_device[0].ids.empty());
    EXPECT_FALSE(virtual_device[0].wants_vfio());
}

TEST(PmdLibrary, WhatIsNotOfTheFormIsSkipped) {
    EXPECT_TRUE(pmd_infos("").empty());
    EXPECT_TRUE(pmd_infos("PMD_INFO_STRING= {\"name\": \"net_x\"").empty());
    EXPECT_TRUE(pmd_infos("PMD_INFO_STRING= {\"pci_ids\": [[1, 2, 3, 4]]}").empty());
    const auto cut = pmd_infos(
        "PMD_INFO_STRING= {\"name\": \"net_x\", \"pci_ids\": [[1, 2, 3, 4], [1, 2], [9, 70000, 1, 1], [5");
    ASSERT_EQ(cut.size(), 1U);
    EXPECT_EQ(cut[0].ids, (std::vector<PciId>{{1, 2, 3, 4}}));
}

TEST(PmdLibrary, AnIdMatchesAllSubsystemsUnlessItNamesOne) {
    const PciId card{0x8086, 0x10b6, 0x8086, 7};
    EXPECT_TRUE((PciId{0x8086, 0x10b6}.matches(card)));
    EXPECT_TRUE((PciId{0x8086, 0x10b6, 0x8086, 7}.matches(card)));
    EXPECT_FALSE((PciId{0x8086, 0x10b6, 0x8086, 8}.matches(card)));
    EXPECT_FALSE((PciId{0x8086, 0x10b7}.matches(card)));
}

TEST(PmdLibrary, TheInstalledLibraryOfADevice) {
    const penstock::test::ScratchFolder folder;
    const Root root(folder.path());
    EXPECT_EQ(pmd_folder(root), "");
    folder.write("usr/lib/aarch64-linux-gnu/dpdk/pmds-23.0/librte_net_null.so.23.0", "nothing");
    folder.write("usr/lib/aarch64-linux-gnu/dpdk/pmds-23.0/librte_net_ixgbe.so.23.0", kIxgbe);
    folder.write("usr/lib/aarch64-linux-gnu/dpdk/pmds-23.0/librte_bus_pci.so.23.0", kIxgbe);
    // Links of libdpdk-dev.
    folder.write("usr/lib/aarch64-linux-gnu/dpdk/pmds-23.0/librte_net_e1000.so", kIxgbe);
    const std::string pmds = pmd_folder(root);
    EXPECT_EQ(pmds, "/usr/lib/aarch64-linux-gnu/dpdk/pmds-23.0");
    const auto found = find_pmd(root, pmds, {0x8086, 0x10b6, 1, 1});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->file + " " + found->info.name, "librte_net_ixgbe.so.23.0 net_ixgbe");
    EXPECT_FALSE(find_pmd(root, pmds, {0x8086, 0xffee, 1, 1}));
    EXPECT_EQ(pmd_file("af_packet", pmds), "librte_net_af_packet.so.23.0");
    EXPECT_EQ(package_of("af_packet", pmds), "librte-net-af-packet23");
    EXPECT_EQ(package_of("mlx5", pmds), "librte-net-mlx5-23");
    EXPECT_EQ(package_of("mlx5", ""), "librte-net-mlx5");
    EXPECT_EQ(library_of("net_virtio_user"), "virtio");
    EXPECT_EQ(library_for_kernel_driver("igb"), "e1000");
    EXPECT_EQ(library_for_kernel_driver("nvme"), "");
}

// The real libraries of this machine have the form that is expected.
TEST(PmdLibrary, InstalledLibrariesAreReadable) {
    const Root root;
    const std::string pmds = pmd_folder(root);
    if (pmds.empty() || !root.exists(pmds + "/" + pmd_file("ixgbe", pmds))) {
        GTEST_SKIP() << "no librte_net_ixgbe is installed";
    }
    const auto found = find_pmd(root, pmds, {0x8086, 0x1563, 0x8086, 1});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->info.name, "net_ixgbe");
    EXPECT_TRUE(found->info.wants_vfio());
}

}  // namespace pmd_library_test
}  // namespace penstock::host
