// SPDX-License-Identifier: Apache-2.0
#include "control/host/systemd_unit.hpp"

#include <gtest/gtest.h>

#include "tests/unit/host/fake_machine.hpp"

namespace penstock::host {
namespace systemd_unit_test {

TEST(SystemdUnit, TheLastValueCounts_OfTheFileWithPrecedenceAndItsDropIns) {
    const test::FakeMachine fake;
    const auto limit = [&] {
        const auto found = unit_setting(fake.machine.root, "penstock-gateway.service", "LimitNOFILE");
        return found ? found->value + " " + found->file : "none";
    };
    fake.file("/etc/systemd/system/penstock-gateway.service.d/a.conf", "[Service]\nLimitNOFILE=1\n");
    EXPECT_EQ(limit(), "none") << "a drop-in without its unit";
    fake.file("/lib/systemd/system/penstock-gateway.service", "[Service]\nLimitNOFILE=2\n#LimitNOFILE=9\n");
    EXPECT_EQ(limit(), "1 /etc/systemd/system/penstock-gateway.service.d/a.conf");
    fake.remove("/etc/systemd/system/penstock-gateway.service.d/a.conf");
    EXPECT_EQ(limit(), "2 /lib/systemd/system/penstock-gateway.service");
    fake.file("/etc/systemd/system/penstock-gateway.service", "[Service]\nType=notify\n");
    EXPECT_EQ(limit(), "none") << "the file of the administrator replaces that of the package";
    fake.file("/usr/lib/systemd/system/penstock-gateway.service.d/b.conf",
              "LimitNOFILE = 3\nLimitNOFILE=4\n");
    fake.file("/run/systemd/system/penstock-gateway.service.d/b.conf", "LimitNOFILE=5\n");
    fake.file("/etc/systemd/system/penstock-gateway.service.d/c.txt", "LimitNOFILE=6\n");
    EXPECT_EQ(limit(), "5 /run/systemd/system/penstock-gateway.service.d/b.conf");
}

}  // namespace systemd_unit_test
}  // namespace penstock::host
