// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/environment_check.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "control/host/pmd_library.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::gateway {
namespace environment_check_test {

namespace fs = std::filesystem;

class EnvironmentCheck : public testing::Test {
 protected:
    void SetUp() override {
        fs::create_directories(folder.path() / "pci" / "0000:03:00.0");
        fs::create_directories(folder.path() / "pmds-23.0");
        for (const char* library : {"af_packet", "bond", "null"}) {
            std::ofstream(folder.path() / "pmds-23.0" / host::pmd_file(library, "pmds-23.0")) << "";
        }
        machine = {.pci_devices = (folder.path() / "pci").string(),
                   .drivers = (folder.path() / "pmds-23.0").string(),
                   .hugepages = (folder.path() / "hugepages").string(),
                   .memory_mb = 24'000,
                   .cpus = {0, 1},
                   .has_interface = [](const std::string& name) { return name == "eth1"; }};
        fs::create_directories(folder.path() / "run");
        std::ofstream(at("file")) << "hello\n";
        std::ofstream(at("plan")) << "version 1\ngateway edge-1\nshare 0 snat=198.51.100.1\nend\n";
    }
    std::string at(const std::string& name) const { return (folder.path() / name).string(); }
    std::vector<std::string> check(std::vector<std::string> more,
                                   const std::string& device = "net_null0") const {
        std::vector<std::string> all{"--port", "device=" + device + ";twin=pen0;address=192.0.2.1/24"};
        if (std::ranges::find(more, "--listen") == more.end()) {
            all.insert(all.end(), {"--listen", "unix:" + at("run/d.sock")});
        }
        all.insert(all.end(), more.begin(), more.end());
        const auto options = Options::parse(all);
        EXPECT_TRUE(options) << options.error().what;
        return options ? check_environment(*options, machine) : std::vector<std::string>{"not parsed"};
    }

    test::ScratchFolder folder;
    MachineFacts machine;
};

TEST_F(EnvironmentCheck, AConfigurationThatWillStart_HasNoMistakes) {
    EXPECT_EQ(check({}), std::vector<std::string>());
    EXPECT_EQ(check({}, "0000:03:00.0"), std::vector<std::string>());
    EXPECT_EQ(check({}, "net_af_packet0,iface=eth1"), std::vector<std::string>());
    EXPECT_EQ(check({}, "net_bonding0,mode=active-backup,member=0000:03:00.0"), std::vector<std::string>());
    EXPECT_EQ(check({"--listen", "unix:/run/penstock/penstockd.sock"}), std::vector<std::string>())
        << "the folder is made";
}

TEST_F(EnvironmentCheck, TheKernelMustHaveHugepagesOfTheNamedSize) {
    fs::create_directories(folder.path() / "hugepages/hugepages-2048kB");
    EXPECT_EQ(check({"--hugepage-size", "2M"}), std::vector<std::string>());
    EXPECT_EQ(check({"--hugepage-size", "1G"}),
              std::vector<std::string>{"--hugepage-size: this kernel offers no 1 GB pages (ls " +
                                       at("hugepages") + " lists the sizes)"});
}

TEST_F(EnvironmentCheck, AnAddressToListenOnMustBeOneOfTheMachine) {
    const auto lines_of = [this](const std::string& address) {
        return check({"--listen", address, "--tls-cert", at("file"), "--tls-key", at("file"),
                      "--tls-client-ca", at("file")});
    };
    const size_t others = lines_of("127.0.0.1:9106").size();
    EXPECT_EQ(lines_of("[::1]:9106").size(), others);
    EXPECT_EQ(lines_of("0.0.0.0:9106").size(), others);
    for (const std::string address : {"203.0.113.99:9106", "[2001:db8::99]:9106"}) {
        const auto lines = lines_of(address);
        EXPECT_EQ(lines.size(), others + 1);
        EXPECT_EQ(lines.at(0), "--listen: " + address + ": this machine does not have the address");
    }
}

TEST_F(EnvironmentCheck, EachMistakeIsOneLine) {
    struct Row {
        std::vector<std::string> options;
        std::string device;
        std::string line;
    };
    const Row rows[] = {
        {{},
         "0000:99:00.0",
         "--port: device=0000:99:00.0: this machine has no such PCI device (lspci -D lists them)"},
        {{},
         "net_bonding0,mode=active-backup,member=0000:98:00.0",
         "--port: device=0000:98:00.0: this machine has no such PCI device (lspci -D lists them)"},
        {{},
         "net_af_packet0,iface=eth7",
         "--port: device=net_af_packet0,iface=eth7: there is no such interface (ip -br link lists them)"},
        {{},
         "net_foo0",
         "--port: device=net_foo0: DPDK's driver net_foo is not installed: Debian's package librte-net-foo23 "
         "is missing, or the name is "
         "misspelt"},
        {{},
         "net_virtio_user0,path=/dev/vhost-net",
         "--port: device=net_virtio_user0: DPDK's driver net_virtio_user is not installed: Debian's package "
         "librte-net-virtio23 is "
         "missing, or the name is misspelt"},
        {{"--memory-mb", "90000"},
         "net_null0",
         "--memory-mb: 90000 MB are more than the 24000 MB of this machine"},
        {{"--listen", "unix:" + at("nowhere/d.sock")},
         "net_null0",
         "--listen: " + at("nowhere/d.sock") + ": there is no folder " + at("nowhere")},
        {{"--listen", "unix:" + at("file")},
         "net_null0",
         "--listen: " + at("file") + " is a file, not a socket"},
        {{"--listen", "unix:" + at("run")},
         "net_null0",
         "--listen: " + at("run") + " is a folder, not a socket"},
        {{"--socket-group", "no-such-group"},
         "net_null0",
         "--socket-group: this machine has no group no-such-group"},
        {{"--state-file", at("run")},
         "net_null0",
         "--state-file: " + at("run") + " is a folder; name a file"},
        {{"--flow-log", at("file")}, "net_null0", "--flow-log: " + at("file") + " is a file; name a folder"},
        {{"--shares", at("file"), "--vip-presence", "routes", "--check-config"},
         "net_null0",
         "--shares: " + at("file") +
             ": line 1: \"hello\" is not version, gateway, shares, share, strays, spread or end; the last "
             "line is not `end`: "
             "the file is not complete; no version: add `version 1`, and raise the number with each change; "
             "no "
             "gateway"},
        {{"--shares", at("plan"), "--vip-presence", "routes", "--snat-address", "198.51.100.1",
          "--check-config"},
         "net_null0",
         "--shares: " + at("plan") +
             ": SNAT address 198.51.100.1 of share 0 is a --snat-address of this gateway: it would use ports "
             "of "
             "other gateways"},
        {{"--blocklist", at("file")},
         "net_null0",
         "--blocklist: " + at("file") + ": line 1: \"hello\" is neither a prefix nor an address"},
        {{"--tls-cert", at("file"), "--tls-key", at("file"), "--tls-client-ca", at("none")},
         "net_null0",
         "--tls-client-ca: " + at("none") + " cannot be read: No such file or directory"},
        {{"--tls-cert", at("file"), "--tls-key", at("file"), "--tls-client-ca", at("file")},
         "net_null0",
         "--tls-cert: " + at("file") + " is not a PEM file: it contains no certificate"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(check(row.options, row.device), std::vector{row.line});
    }
    EXPECT_EQ(check({"--worker-cores", "7"}).size(), 1U);
    EXPECT_FALSE(fs::exists(at("nowhere")));
}

TEST_F(EnvironmentCheck, AllMistakesAreNamed) {
    EXPECT_EQ(check({"--memory-mb", "90000", "--state-file", at("run")}, "net_foo0").size(), 3U);
}

TEST_F(EnvironmentCheck, TheSandboxKeepsWhatThePortsUse) {
    const auto used = [](const std::string& device, std::vector<std::string> more = {}) {
        more.insert(more.end(), {"--port", "device=" + device + ";twin=pen0"});
        return used_capabilities(Options::parse(more).value());
    };
    const auto has = [](const std::vector<int>& all, int one) {
        return std::ranges::find(all, one) != all.end();
    };
    EXPECT_FALSE(has(used("net_af_packet0,iface=veth0"), CAP_SYS_ADMIN));
    EXPECT_TRUE(has(used("net_af_packet0,iface=veth0"), CAP_NET_ADMIN));
    EXPECT_TRUE(has(used("net_af_xdp0,iface=veth0"), CAP_BPF));
    EXPECT_TRUE(has(used("0000:03:00.0"), CAP_SYS_RAWIO));
    EXPECT_FALSE(has(used("net_null0"), CAP_CHOWN));
    EXPECT_TRUE(has(used("net_null0", {"--socket-group", "adm"}), CAP_CHOWN));
    EXPECT_FALSE(has(used("net_null0"), CAP_DAC_OVERRIDE));
    EXPECT_TRUE(has(used("net_null0", {"--bfd", "frr:/run/frr/bfdd-dp.sock"}), CAP_DAC_OVERRIDE));
}

}  // namespace environment_check_test
}  // namespace penstock::gateway
