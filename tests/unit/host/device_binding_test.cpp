// SPDX-License-Identifier: Apache-2.0
// bind and unbind, with a simulated kernel behind the files of sysfs.
#include "control/host/device_binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/host/pci_device.hpp"
#include "tests/unit/host/fake_machine.hpp"

namespace penstock::host {
namespace device_binding_test {

constexpr const char* kDevice = "0000:03:00.0";
const std::string kFolder = std::string("/sys/bus/pci/devices/") + kDevice;

class Binding : public testing::Test {
 protected:
    void SetUp() override {
        fake.file(kFolder + "/vendor", "0x8086\n");
        fake.make_folder("/sys/bus/pci/drivers/vfio-pci");
        driver("ixgbe");
        fake.write = [this](std::string_view path, std::string_view text) {
            return kernel(std::string(path), std::string(text));
        };
    }
    void driver(const std::string& name) const {
        if (name.empty()) {
            fake.remove(kFolder + "/driver");
        } else {
            fake.link(kFolder + "/driver", "../../../bus/pci/drivers/" + name);
        }
    }
    std::string driver() const { return read_pci_device(fake.machine.root, kDevice)->kernel_driver; }

    // drivers_probe attaches the driver of driver_override, or the device's own one.
    Status kernel(const std::string& path, const std::string& text) {
        written.push_back(path.substr(path.rfind('/') + 1) + "=" + text);
        if (path == kFolder + "/driver/unbind") {
            if (driver().empty()) {
                return fail(Errc::Unavailable, "no driver");
            }
            driver("");
        } else if (path == kFolder + "/driver_override") {
            override_ = text == "\n" ? "" : text.substr(0, text.find('\n'));
        } else if (path == "/sys/bus/pci/drivers_probe") {
            const std::string wanted = override_.empty() ? "ixgbe" : override_;
            if (wanted != refusing) {
                driver(wanted);
            }
        } else {
            return fail(Errc::Unavailable, path + " is not a file that should be written");
        }
        return {};
    }

    test::FakeMachine fake;
    std::string refusing;  // a driver that does not accept the device
    std::string override_;
    std::vector<std::string> written;
};

TEST_F(Binding, BindRecordsTheDriverThatUnbindRestores) {
    EXPECT_EQ(bind_device(fake.machine, kDevice), "0000:03:00.0 is bound to vfio-pci; formerly ixgbe");
    EXPECT_EQ(driver(), "vfio-pci");
    EXPECT_EQ(recorded_driver(fake.machine.root, kDevice), "ixgbe");
    EXPECT_EQ(bind_device(fake.machine, kDevice), "0000:03:00.0 is already bound to vfio-pci");
    EXPECT_EQ(recorded_driver(fake.machine.root, kDevice), "ixgbe") << "the record is kept";
    EXPECT_EQ(unbind_device(fake.machine, kDevice), "0000:03:00.0 is bound to ixgbe");
    EXPECT_EQ(driver(), "ixgbe");
    EXPECT_EQ(override_, "") << "other drivers may take the device again";
    EXPECT_FALSE(recorded_driver(fake.machine.root, kDevice));
    EXPECT_EQ(unbind_device(fake.machine, kDevice),
              "0000:03:00.0 is not bound to vfio-pci; its driver is ixgbe");
}

TEST_F(Binding, ADeviceWithoutADriver) {
    driver("");
    EXPECT_EQ(bind_device(fake.machine, kDevice), "0000:03:00.0 is bound to vfio-pci; formerly no driver");
    EXPECT_EQ(unbind_device(fake.machine, kDevice), "0000:03:00.0 is bound to ixgbe") << "the kernel selects";
}

TEST_F(Binding, ARefusedBindIsUndone) {
    refusing = "vfio-pci";
    const auto refused = bind_device(fake.machine, kDevice);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what, testing::HasSubstr("driver vfio-pci did not accept the device"));
    EXPECT_EQ(driver(), "ixgbe");
    EXPECT_EQ(override_, "");
    EXPECT_FALSE(recorded_driver(fake.machine.root, kDevice));
}

TEST_F(Binding, ARefusedUnbindIsUndone) {
    ASSERT_TRUE(bind_device(fake.machine, kDevice));
    refusing = "ixgbe";
    EXPECT_FALSE(unbind_device(fake.machine, kDevice));
    EXPECT_EQ(driver(), "vfio-pci");
    EXPECT_EQ(recorded_driver(fake.machine.root, kDevice), "ixgbe") << "for the next attempt";
}

TEST_F(Binding, ADeviceThatCarriesConnectionsIsRefused) {
    fake.make_folder(kFolder + "/net/eth0");
    fake.file("/proc/net/route", "Iface\tDestination\tGateway\neth0\t00000000\t0102000A\n");
    const auto refused = bind_device(fake.machine, kDevice);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::AlreadyExists);
    EXPECT_THAT(refused.error().what, testing::HasSubstr("its interface eth0 has addresses or routes"));
    EXPECT_TRUE(written.empty());
    fake.file("/proc/net/route", "Iface\tDestination\tGateway\neth01\t00000000\t0102000A\n");
    fake.file("/proc/net/if_inet6", "fe80000000000000020000fffe000001 02 40 20 80     eth0\n");
    const auto bound = bind_device(fake.machine, kDevice);
    EXPECT_TRUE(bound) << bound.error().what << ": a link-local address is no use";
    ASSERT_TRUE(unbind_device(fake.machine, kDevice));
    fake.file("/proc/net/if_inet6", "20010db8000000000000000000000001 02 40 00 80     eth0\n");
    EXPECT_FALSE(bind_device(fake.machine, kDevice));
}

TEST_F(Binding, TheModuleIsLoadedIfMissing) {
    ASSERT_TRUE(bind_device(fake.machine, kDevice));
    EXPECT_TRUE(fake.modules.empty());
    ASSERT_TRUE(unbind_device(fake.machine, kDevice));
    fake.remove("/sys/bus/pci/drivers/vfio-pci");
    ASSERT_TRUE(bind_device(fake.machine, kDevice));
    EXPECT_EQ(fake.modules, std::vector<std::string>{"vfio-pci"});
}

TEST_F(Binding, AfterAReboot_UnbindRemovesTheRecord) {
    ASSERT_TRUE(bind_device(fake.machine, kDevice));
    driver("ixgbe");
    written.clear();
    EXPECT_EQ(unbind_device(fake.machine, kDevice), "0000:03:00.0 is bound to ixgbe");
    EXPECT_TRUE(written.empty());
    EXPECT_FALSE(recorded_driver(fake.machine.root, kDevice));
}

TEST_F(Binding, Addresses) {
    EXPECT_EQ(full_pci_address("03:00.0"), kDevice);
    EXPECT_EQ(full_pci_address("0000:0A:00.0"), "0000:0a:00.0");
    EXPECT_FALSE(full_pci_address("../x"));
    EXPECT_EQ(bind_device(fake.machine, "0000:09:00.0").error().code, Errc::NotFound);
    EXPECT_EQ(unbind_device(fake.machine, "0000:09:00.0").error().code, Errc::NotFound);
}

}  // namespace device_binding_test
}  // namespace penstock::host
