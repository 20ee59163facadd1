// SPDX-License-Identifier: Apache-2.0
// Names of port locks and of guard tables.
#include "drivers/port/port_lock.hpp"

#include <gtest/gtest.h>

#include "drivers/host/ingress_guard.hpp"

namespace penstock::drivers {
namespace port_lock_test {

TEST(PortLock, PciDevicesAreTheMachines) {
    EXPECT_EQ(port_lock_path("/run/penstock", 4026531840, "veth0"),
              "/run/penstock/port-4026531840-veth0.lock");
    EXPECT_EQ(port_lock_path("/run/penstock", 1, "0000:03:00.0"), "/run/penstock/port-pci-0000_03_00.0.lock");
    EXPECT_EQ(guard_table_name("eth0.7", 12), "penstock_12_eth0_7");
}

}  // namespace port_lock_test
}  // namespace penstock::drivers
