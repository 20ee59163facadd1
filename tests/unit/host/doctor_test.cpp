// SPDX-License-Identifier: Apache-2.0
#include "control/host/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "control/tls/material.hpp"
#include "tests/support/certificates.hpp"
#include "tests/unit/host/fake_machine.hpp"

namespace penstock::host {
namespace doctor_test {

using Lines = std::vector<std::string>;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kNullPort = "port = device=net_null0;twin=pen0\n";
constexpr const char* kPciPort = "port = device=0000:03:00.0;twin=pen0\n";

class Doctor : public testing::Test {
 protected:
    // A machine with four CPUs on two nodes, on which the process may use all.
    void SetUp() override {
        fake.file("/proc/self/status", "Name:\tpenstockctl\nCpus_allowed_list:\t0-3\n");
        fake.file("/sys/devices/system/cpu/online", "0-3\n");
        fake.file("/sys/devices/system/cpu/isolated", "\n");
        node(0, "0-1", 256, 256);
        node(1, "2-3", 0, 0);
    }
    void node(int id, const std::string& cpus, int pages, int free) const {
        const std::string folder = "/sys/devices/system/node/node" + std::to_string(id);
        fake.file(folder + "/cpulist", cpus + "\n");
        fake.file(folder + "/hugepages/hugepages-2048kB/nr_hugepages", std::to_string(pages) + "\n");
        fake.file(folder + "/hugepages/hugepages-2048kB/free_hugepages", std::to_string(free) + "\n");
    }
    void large_pages(int pages, int free) const {
        const std::string folder = "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB";
        fake.file(folder + "/nr_hugepages", std::to_string(pages) + "\n");
        fake.file(folder + "/free_hugepages", std::to_string(free) + "\n");
    }
    // An ixgbe card on node 0.
    void card(const std::string& driver, const std::string& address = "0000:03:00.0") const {
        const std::string folder = "/sys/bus/pci/devices/" + address;
        fake.file(folder + "/vendor", "0x8086\n");
        fake.file(folder + "/device", "0x1563\n");
        fake.file(folder + "/subsystem_vendor", "0x8086\n");
        fake.file(folder + "/subsystem_device", "0x0001\n");
        fake.file(folder + "/numa_node", "0\n");
        if (!driver.empty()) {
            fake.link(folder + "/driver", "../../../../bus/pci/drivers/" + driver);
        }
    }
    void library(const std::string& name, const std::string& info) const {
        fake.file(
            "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_" + name + ".so.23.0",
            "\x7f" + std::string("ELF\0", 4) + "PMD_INFO_STRING= {" + info + "}" + std::string("\0", 1));
    }
    void process(const std::string& pid, const std::string& name) const {
        fake.file("/proc/" + pid + "/comm", name + "\n");
    }

    test::FakeMachine fake;
};

TEST_F(Doctor, AnEmptyMachine_EveryCheckHasAResultThatNamesWhatIsMissing) {
    const test::FakeMachine bare;
    bare.file("/etc/p.ini",
              "port = device=0000:03:00.0;twin=pen0\nport = device=net_af_packet0,iface=eth0;twin=pen1\n"
              "vip-presence = routes\nlisten = 192.0.2.1:9106\ntls-cert = /c\ntls-key = /k\n"
              "tls-client-ca = /a\nworker-cores = 2\n");
    std::set<std::string> seen;
    for (const Finding& finding : examine(bare.machine, "/etc/p.ini")) {
        seen.insert(finding.check);
        EXPECT_FALSE(finding.text.empty()) << finding.check;
        if (finding.level == Level::Unknown) {
            EXPECT_THAT(finding.text, testing::AnyOf(HasSubstr("cannot be read"), HasSubstr("not")))
                << finding.check;
        }
    }
    for (const CheckName& check : all_checks()) {
        EXPECT_TRUE(seen.contains(std::string(check.name))) << check.name;
    }
    EXPECT_EQ(seen.size(), all_checks().size());
}

// docs/doctor.md has a row for each check, in the same words.
TEST(DoctorPage, HasEachCheck) {
    std::ifstream file(PENSTOCK_DOCTOR_PAGE);
    const std::string page(std::istreambuf_iterator<char>(file), {});
    for (const CheckName& check : all_checks()) {
        EXPECT_THAT(page,
                    HasSubstr("| `" + std::string(check.name) + "` | " + std::string(check.meaning) + " | "));
    }
}

TEST_F(Doctor, Configuration) {
    constexpr const char* kFile = "/etc/penstock/penstockd.ini";
    EXPECT_EQ(fake.check("configuration"),
              (Lines{"unknown : no configuration is given: ports and addresses are not checked",
                     "  penstockctl doctor /etc/penstock/penstockd.ini"}));
    EXPECT_EQ(fake.check("configuration", kNullPort), Lines{std::string("ok ") + kFile + ": 1 ports, valid"});
    fake.mistakes = Lines{"--workers: \"0\" must be 1 to 64 workers"};
    EXPECT_EQ(fake.check("configuration", kNullPort),
              (Lines{std::string("fault ") + kFile + ": --workers: \"0\" must be 1 to 64 workers",
                     std::string("  penstockd --check-config --config ") + kFile}));
    // Without penstockd, its own reading finds some mistakes.
    fake.mistakes = std::nullopt;
    EXPECT_THAT(fake.check("configuration", kNullPort).front(), HasSubstr("penstockd is not installed here"));
    EXPECT_THAT(fake.check("configuration", "memory-mb = much\n").front(),
                StartsWith(std::string("fault ") + kFile + ": --memory-mb: \"much\""));
    const auto findings = examine(fake.machine, "/none.ini");
    EXPECT_EQ(findings.front().level, Level::Fault);
    EXPECT_EQ(findings.front().text, "the file cannot be read");
}

TEST_F(Doctor, Hugepages) {
    const std::string needs = std::string(kNullPort) + "memory-mb = 512\nmain-core = 0\nworker-cores = 1\n";
    EXPECT_EQ(fake.check("hugepages", needs),
              (Lines{"ok node 0: 512 of 512 MB free", "ok node 1: 0 of 0 MB free"}));
    node(0, "0-1", 100, 100);
    EXPECT_EQ(
        fake.check("hugepages", needs),
        (Lines{
            "warning node 0: 200 of 200 MB free; --memory-mb 512 needs 312 MB more: penstockd requests them, "
            "and uses slower memory if refused",
            "  echo 256 >/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
            "ok node 1: 0 of 0 MB free"}));
    // Enough on the machine, but none where the worker is.
    node(0, "0-1", 512, 512);
    EXPECT_EQ(fake.check("hugepages", std::string(kNullPort) + "worker-cores = 2\n"),
              (Lines{"ok node 0: 1024 of 1024 MB free",
                     "warning node 1: no hugepages, although a device or worker is on this node",
                     "  echo 256 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"}));
    // A running penstockd has its pages already.
    node(0, "0-1", 256, 0);
    process("41", "penstockd");
    EXPECT_EQ(fake.check("hugepages", needs).front(), "ok node 0: 0 of 512 MB free; penstockd is running");
    fake.remove("/proc/41");
    // A device without an IOMMU needs physical addresses.
    card("vfio-pci");
    EXPECT_THAT(fake.check("hugepages", kPciPort).front(), StartsWith("fault node 0: 0 of 512 MB free"));
    EXPECT_THAT(fake.check("hugepages", std::string(kPciPort) + "no-huge = on\n").front(),
                StartsWith("fault : --no-huge"));
    EXPECT_EQ(fake.check("hugepages", std::string(kNullPort) + "no-huge = on\n"),
              Lines{"ok : not used (--no-huge)"});
    fake.remove("/sys/devices/system/node");
    EXPECT_EQ(fake.check("hugepages", needs), Lines{"unknown : /sys/kernel/mm/hugepages cannot be read"});
}

TEST_F(Doctor, HugepagesOfANamedSize) {
    const std::string needs =
        std::string(kNullPort) + "memory-mb = 1100\nmain-core = 0\nworker-cores = 1\nhugepage-size = 1G\n";
    fake.remove("/sys/devices/system/node/node1");
    EXPECT_EQ(fake.check("hugepages", needs),
              Lines{"unknown node 0: /sys/devices/system/node/node0/hugepages/hugepages-1048576kB cannot be "
                    "read"});
    // Two pages for 1,100 MB, and one because tables and packet buffers have pages of their own.
    large_pages(3, 2);
    EXPECT_EQ(fake.check("hugepages", needs),
              (Lines{"warning node 0: 2048 of 3072 MB free in pages of 1 GB; --memory-mb 1100 needs 1024 MB "
                     "more: penstockd requests them, and does not start if refused; the kernel option "
                     "hugepagesz=1G hugepages=N reserves them at boot",
                     "  echo 4 >/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages"}));
    large_pages(3, 3);
    EXPECT_EQ(fake.check("hugepages", needs), Lines{"ok node 0: 3072 of 3072 MB free in pages of 1 GB"});
    node(0, "0-1", 256, 200);
    EXPECT_EQ(fake.check("hugepages", std::string(kNullPort) + "memory-mb = 512\nhugepage-size = 2M\n"),
              (Lines{"warning node 0: 400 of 512 MB free in pages of 2 MB; --memory-mb 512 needs 112 MB "
                     "more: penstockd requests them, and does not start if refused",
                     "  echo 312 >/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"}));
}

TEST_F(Doctor, Iommu) {
    EXPECT_THAT(fake.check("iommu", kNullPort).front(), StartsWith("ok : not needed"));
    fake.make_folder("/sys/kernel");
    EXPECT_THAT(fake.check("iommu", kPciPort).front(), StartsWith("fault : off"));
    fake.file("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    EXPECT_THAT(fake.check("iommu", kPciPort).front(),
                StartsWith("warning : off; vfio-pci works in its unsafe mode"));
    fake.make_folder("/sys/kernel/iommu_groups/7");
    EXPECT_EQ(fake.check("iommu", kPciPort), Lines{"ok : on"});
}

TEST_F(Doctor, Device) {
    EXPECT_EQ(fake.check("device", kPciPort), Lines{"unknown : /sys/bus/pci/devices cannot be read"});
    card("ixgbe", "0000:04:00.0");
    EXPECT_EQ(fake.check("device", kPciPort),
              (Lines{"fault 0000:03:00.0: this machine has no such PCI device", "  lspci -D -nn"}));
    card("ixgbe");
    EXPECT_EQ(fake.check("device", kPciPort), Lines{"ok 0000:03:00.0: 8086:1563"});
    EXPECT_EQ(fake.check("device", "port = device=net_bonding0,member=0000:03:00.0,member=05:00.0;twin=a\n"),
              (Lines{"ok 0000:03:00.0: 8086:1563", "fault 0000:05:00.0: this machine has no such PCI device",
                     "  lspci -D -nn"}));
}

TEST_F(Doctor, Driver) {
    card("ixgbe");
    EXPECT_EQ(fake.check("driver", kPciPort), Lines{"unknown : /usr/lib/*/dpdk/pmds-* cannot be read"});
    library("i40e", R"("name": "net_i40e", "kmod": "* vfio-pci", "pci_ids": [[32902, 5506, 65535, 65535]])");
    EXPECT_EQ(fake.check("driver", kPciPort),
              (Lines{"fault 0000:03:00.0: no installed DPDK driver supports the device 8086:1563",
                     "  apt-get install librte-net-ixgbe23"}));
    library(
        "ixgbe",
        R"("name": "net_ixgbe", "kmod": "* igb_uio | vfio-pci", "pci_ids": [[32902, 1, 65535, 65535], [32902, 5475, 65535, 65535]])");
    EXPECT_EQ(fake.check("driver", kPciPort),
              Lines{"ok 0000:03:00.0: 8086:1563: net_ixgbe in librte_net_ixgbe.so.23.0"});
    EXPECT_EQ(
        fake.check("driver", "port = device=net_virtio_user0,path=/dev/vhost-net;twin=a\n"),
        (Lines{
            "fault net_virtio_user0: DPDK's driver net_virtio_user is not installed, or the name is misspelt",
            "  apt-get install librte-net-virtio23"}));
}

TEST_F(Doctor, Binding) {
    library(
        "ixgbe",
        R"("name": "net_ixgbe", "kmod": "* igb_uio | vfio-pci", "pci_ids": [[32902, 5475, 65535, 65535]])");
    card("ixgbe");
    EXPECT_EQ(fake.check("binding", kPciPort), (Lines{"fault 0000:03:00.0: bound to ixgbe, not to vfio-pci",
                                                      "  penstockctl doctor bind 0000:03:00.0"}));
    card("igb_uio");
    EXPECT_THAT(fake.check("binding", kPciPort).front(),
                StartsWith("warning 0000:03:00.0: bound to igb_uio"));
    card("vfio-pci");
    EXPECT_EQ(fake.check("binding", kPciPort), Lines{"ok 0000:03:00.0: bound to vfio-pci"});
    // The rest of the group.
    card("ixgbe", "0000:03:00.1");
    card("pcieport", "0000:00:1c.0");
    fake.link("/sys/bus/pci/devices/0000:03:00.0/iommu_group",
              fake.machine.root.at("/sys/kernel/iommu_groups/7"));
    for (const char* member : {"0000:03:00.0", "0000:03:00.1", "0000:00:1c.0"}) {
        fake.make_folder(std::string("/sys/kernel/iommu_groups/7/devices/") + member);
    }
    EXPECT_EQ(fake.check("binding", kPciPort),
              (Lines{"ok 0000:03:00.0: bound to vfio-pci",
                     "fault 0000:03:00.0: its IOMMU group 7 contains 0000:03:00.1, which is bound to ixgbe",
                     "  penstockctl doctor bind 0000:03:00.1"}));
    // mlx5 stays with its kernel driver.
    library(
        "mlx5",
        R"("name": "mlx5_eth", "kmod": "* ib_uverbs & mlx5_core", "pci_ids": [[5555, 4117, 65535, 65535]])");
    fake.file("/sys/bus/pci/devices/0000:03:00.0/vendor", "0x15b3\n");
    fake.file("/sys/bus/pci/devices/0000:03:00.0/device", "0x1015\n");
    EXPECT_EQ(
        fake.check("binding", kPciPort),
        (Lines{"fault 0000:03:00.0: mlx5_eth needs the device at its kernel driver (* ib_uverbs & mlx5_core)",
               "  penstockctl doctor unbind 0000:03:00.0"}));
    fake.link("/sys/bus/pci/devices/0000:03:00.0/driver", "../drivers/mlx5_core");
    EXPECT_EQ(fake.check("binding", kPciPort), Lines{"ok 0000:03:00.0: shared with mlx5_core"});
}

TEST_F(Doctor, Numa) {
    card("vfio-pci");
    const auto with_cores = [](const std::string& cores) {
        return kPciPort + ("main-core = 0\nworker-cores = " + cores + "\n");
    };
    EXPECT_EQ(fake.check("numa", with_cores("1")), Lines{"ok 0000:03:00.0: on node 0, as all workers"});
    EXPECT_EQ(fake.check("numa", with_cores("2-3")),
              (Lines{"warning 0000:03:00.0: on node 0, workers on node 1: every packet crosses nodes",
                     "  sed -i 's/^worker-cores.*/worker-cores = 0-1/' /etc/penstock/penstockd.ini"}));
    fake.file("/sys/bus/pci/devices/0000:03:00.0/numa_node", "-1\n");
    EXPECT_THAT(fake.check("numa", with_cores("1")).front(),
                StartsWith("unknown 0000:03:00.0: the NUMA node"));
    fake.remove("/sys/devices/system/node/node1");
    EXPECT_EQ(fake.check("numa", with_cores("1")), Lines{"ok : one node"});
    fake.remove("/sys/devices/system/node");
    EXPECT_EQ(fake.check("numa", with_cores("1")),
              Lines{"unknown : /sys/devices/system/node cannot be read"});
}

TEST_F(Doctor, Cpus) {
    EXPECT_EQ(fake.check("cpus", std::string(kNullPort) + "workers = 2\n"),
              Lines{"ok : workers on 1-2, all other threads on 0"});
    EXPECT_THAT(fake.check("cpus", std::string(kNullPort) + "worker-cores = 0\n").front(),
                StartsWith("warning : a worker polls on CPU 0"));
    EXPECT_THAT(fake.check("cpus", std::string(kNullPort) + "worker-cores = 7\n").front(),
                StartsWith("fault : --worker-cores: CPU 7 is not among"));
    fake.file("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n");
    EXPECT_THAT(fake.check("cpus", std::string(kNullPort) + "worker-cores = 1,3\n").front(),
                HasSubstr("CPUs 1 and 3 are hardware threads of one core"));
    fake.file("/sys/devices/system/cpu/online", "0-2\n");
    EXPECT_EQ(fake.check("cpus", std::string(kNullPort) + "worker-cores = 2-3\n"),
              (Lines{"fault : workers on 2-3, all other threads on 0; offline: 3",
                     "  echo 1 >/sys/devices/system/cpu/cpu3/online"}));
    fake.remove("/proc/self/status");
    EXPECT_EQ(fake.check("cpus", kNullPort),
              Lines{"unknown : /proc/self/status (Cpus_allowed_list) cannot be read"});
}

TEST_F(Doctor, Isolation) {
    const std::string needs = std::string(kNullPort) + "worker-cores = 2-3\n";
    EXPECT_EQ(
        fake.check("isolation", needs),
        (Lines{
            "warning : other programs may run on the workers' CPUs 2-3",
            "  sed -i 's/^GRUB_CMDLINE_LINUX=\"/&isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 /' "
            "/etc/default/grub && update-grub && reboot"}));
    fake.file("/sys/devices/system/cpu/isolated", "2\n");
    fake.file("/sys/fs/cgroup/cpuset.cpus.isolated", "3\n");
    EXPECT_EQ(fake.check("isolation", needs), Lines{"ok : CPUs 2-3 are isolated"});
    fake.remove("/sys/devices/system/cpu/isolated");
    fake.remove("/sys/fs/cgroup/cpuset.cpus.isolated");
    EXPECT_EQ(fake.check("isolation", needs),
              Lines{"unknown : /sys/devices/system/cpu/isolated cannot be read"});
}

TEST_F(Doctor, IrqAffinity) {
    const std::string needs = std::string(kNullPort) + "worker-cores = 2-3\n";
    EXPECT_EQ(fake.check("irq-affinity", needs), Lines{"unknown : /proc/irq cannot be read"});
    const auto irq = [&](const std::string& number, const std::string& cpus, const std::string& handler) {
        fake.file("/proc/irq/" + number + "/effective_affinity_list", cpus + "\n");
        if (!handler.empty()) {
            fake.make_folder("/proc/irq/" + number + "/" + handler);
        }
    };
    irq("24", "0", "eth0");
    irq("25", "2", "");  // no handler
    irq("26", "3", "vfio-msix[0](0000:03:00.0)");
    EXPECT_THAT(fake.check("irq-affinity", needs).front(), StartsWith("ok : no interrupt"));
    irq("27", "3", "nvme0q1");
    irq("8", "2-3", "rtc0");
    EXPECT_EQ(fake.check("irq-affinity", needs),
              (Lines{"warning : 2 interrupts run on the workers' CPUs: 8,27",
                     "  for irq in 8 27; do echo 0-1 >/proc/irq/$irq/smp_affinity_list; done"}));
    process("77", "irqbalance");
    EXPECT_THAT(fake.check("irq-affinity", needs).back(), HasSubstr("IRQBALANCE_BANNED_CPULIST=2-3"));
}

TEST_F(Doctor, Governor) {
    const std::string needs = std::string(kNullPort) + "worker-cores = 2-3\n";
    EXPECT_THAT(fake.check("governor", needs).front(), StartsWith("ok : the kernel does not scale"));
    fake.file("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n");
    fake.file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance\n");
    EXPECT_EQ(fake.check("governor", needs), Lines{"ok : performance"});
    fake.file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave\n");
    EXPECT_EQ(fake.check("governor", needs),
              (Lines{"warning : CPUs 3 use the governor powersave, which lowers their frequency",
                     "  echo performance | tee /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"}));
    fake.remove("/sys/devices/system/cpu");
    EXPECT_EQ(fake.check("governor", needs), Lines{"unknown : /sys/devices/system/cpu cannot be read"});
}

TEST_F(Doctor, Interface) {
    constexpr const char* kPort = "port = device=net_af_packet0,iface=eth1;twin=pen0\n";
    EXPECT_EQ(fake.check("interface", kPort), Lines{"unknown : /sys/class/net cannot be read"});
    fake.make_folder("/sys/class/net/lo");
    EXPECT_EQ(fake.check("interface", kPort),
              (Lines{"fault eth1: there is no such interface", "  ip link", "ok pen0: free for the twin"}));
    fake.file("/sys/class/net/eth1/flags", "0x1002\n");
    EXPECT_EQ(fake.check("interface", kPort).front(), "warning eth1: down; penstockd sets it up");
    fake.file("/sys/class/net/eth1/flags", "0x1003\n");
    fake.file("/sys/class/net/eth1/carrier", "0\n");
    EXPECT_THAT(fake.check("interface", kPort).front(), StartsWith("warning eth1: up, but without a link"));
    fake.file("/sys/class/net/eth1/carrier", "1\n");
    fake.make_folder("/sys/class/net/pen0");
    EXPECT_EQ(fake.check("interface", kPort),
              (Lines{"ok eth1: up", "fault pen0: an interface with the name of the twin exists already",
                     "  ip link delete pen0"}));
    process("41", "penstockd");
    EXPECT_EQ(fake.check("interface", kPort),
              (Lines{"ok eth1: up", "ok pen0: the twin of a running penstockd"}));
}

TEST_F(Doctor, AGatewayOfAnotherNetworkNamespaceIsNotThisOne) {
    fake.file("/proc/self/limits", "Max open files 1024 65536 files\n");
    fake.file("/proc/41/limits", "Max open files 1024 70000 files\n");
    process("41", "penstockd");
    fake.link("/proc/self/ns/net", "net:[1]");
    fake.link("/proc/41/ns/net", "net:[2]");
    EXPECT_THAT(fake.check("file-limit").front(), HasSubstr("65536"));
    fake.link("/proc/41/ns/net", "net:[1]");
    EXPECT_THAT(fake.check("file-limit").front(), HasSubstr("70000"));
}

TEST_F(Doctor, Offloads) {
    constexpr const char* kPort = "port = device=net_af_packet0,iface=veth0;twin=pen0\n";
    EXPECT_EQ(fake.check("offloads", kPort), Lines{"ok : no port uses a veth"});
    fake.file("/sys/class/net/veth0/ifindex", "5\n");
    fake.file("/sys/class/net/veth0/iflink", "6\n");
    fake.offloads["veth0"] = {"gro"};  // which penstockd switches off
    EXPECT_EQ(fake.check("offloads", kPort),
              (Lines{"ok veth0: off",
                     "unknown veth0: its other end is in another network namespace, where offloads must be "
                     "off as well",
                     "  ip netns exec NAMESPACE ethtool -K DEV tx off rx off tso off gso off gro off"}));
    fake.file("/sys/class/net/veth1/ifindex", "6\n");
    fake.file("/sys/class/net/veth1/iflink", "5\n");
    EXPECT_EQ(fake.check("offloads", kPort).back(),
              "unknown veth1: the offloads (ethtool -k veth1) cannot be read");
    fake.offloads["veth0"] = {"tx", "tso"};
    fake.offloads["veth1"] = {"tx", "gso"};
    EXPECT_EQ(
        fake.check("offloads", kPort),
        (Lines{"warning veth0: on: tx, tso; frames may arrive that no real link would carry",
               "  ethtool -K veth0 tx off rx off tso off gso off gro off",
               "fault veth1: on: tx, gso; frames reach the gateway with missing checksums, and are dropped",
               "  ethtool -K veth1 tx off rx off tso off gso off gro off"}));
    fake.offloads["veth1"] = {};
    EXPECT_EQ(fake.check("offloads", kPort).back(), "ok veth1: off");
}

TEST_F(Doctor, RpFilter) {
    constexpr const char* kTwoPorts =
        "port = device=net_null0;twin=pen0\nport = device=net_null1;twin=pen1\n";
    EXPECT_THAT(fake.check("rp-filter", kTwoPorts).front(),
                StartsWith("unknown : /proc/sys/net/ipv4/conf/all"));
    fake.file("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
    fake.file("/proc/sys/net/ipv4/conf/default/rp_filter", "1\n");
    fake.file("/proc/sys/net/ipv4/conf/pen0/rp_filter", "2\n");
    const Lines strict = fake.check("rp-filter", kTwoPorts);
    EXPECT_THAT(strict.front(), StartsWith("warning : strict for pen1: "));
    EXPECT_EQ(strict.back(), "  sysctl -w net.ipv4.conf.all.rp_filter=2");
    EXPECT_EQ(fake.check("rp-filter", "port = device=net_null1;twin=pen1\n"),
              Lines{"ok : strict, which one port permits"});
    fake.file("/proc/sys/net/ipv4/conf/all/rp_filter", "2\n");
    EXPECT_EQ(fake.check("rp-filter", kTwoPorts), Lines{"ok : not strict"});
}

TEST_F(Doctor, TcpRfc1337) {
    EXPECT_THAT(fake.check("tcp-rfc1337").front(), StartsWith("unknown : /proc/sys/net/ipv4/tcp_rfc1337"));
    fake.file("/proc/sys/net/ipv4/tcp_rfc1337", "1\n");
    EXPECT_EQ(fake.check("tcp-rfc1337").back(), "  sysctl -w net.ipv4.tcp_rfc1337=0");
    fake.file("/proc/sys/net/ipv4/tcp_rfc1337", "0\n");
    EXPECT_THAT(fake.check("tcp-rfc1337").front(), StartsWith("ok : 0"));
}

TEST_F(Doctor, Announcement) {
    const std::string needs = std::string(kNullPort) + "vip-presence = routes\n";
    EXPECT_THAT(fake.check("announcement", kNullPort).front(),
                StartsWith("ok : no routing daemon is needed"));
    EXPECT_THAT(fake.check("announcement", needs).front(), StartsWith("warning : neither FRR nor BIRD"));
    fake.make_folder("/etc/frr");
    EXPECT_EQ(fake.check("announcement", needs), Lines{"unknown FRR: /etc/frr/frr.conf cannot be read"});
    fake.file("/etc/frr/frr.conf", "router bgp 64512\n address-family ipv4 unicast\n");
    EXPECT_EQ(
        fake.check("announcement", needs),
        (Lines{"fault FRR: /etc/frr/frr.conf does not redistribute kernel routes, so VIPs are not announced",
               "  vtysh -c 'configure terminal' -c 'router bgp 64512' -c 'address-family ipv4 unicast' -c "
               "'redistribute kernel' -c end -c 'write memory'"}));
    fake.file("/etc/frr/frr.conf", "router bgp 64512\n address-family ipv4 unicast\n  redistribute kernel\n");
    EXPECT_THAT(fake.check("announcement", needs).front(), StartsWith("ok FRR: "));
    fake.remove("/etc/frr");
    fake.file("/etc/bird/bird.conf", "protocol kernel { ipv4 { import all; }; }\n");
    EXPECT_THAT(fake.check("announcement", needs).front(),
                StartsWith("fault BIRD: /etc/bird/bird.conf does not learn kernel routes"));
    fake.file("/etc/bird/bird.conf", "include \"other.conf\";\n");
    EXPECT_THAT(fake.check("announcement", needs).front(), StartsWith("unknown BIRD: "));
    fake.file("/etc/bird/bird.conf", "protocol kernel { learn; ipv4 { import where krt_source = 80; }; }\n");
    EXPECT_EQ(fake.check("announcement", needs), Lines{"ok BIRD: /etc/bird/bird.conf learns kernel routes"});
}

TEST_F(Doctor, Clock) {
    EXPECT_EQ(fake.check("clock"), Lines{"ok : synchronised"});
    fake.clock = false;
    EXPECT_THAT(fake.check("clock").front(), StartsWith("warning : not synchronised"));
    fake.clock = std::nullopt;
    EXPECT_THAT(fake.check("clock").front(), StartsWith("unknown : "));
}

TEST_F(Doctor, Certificates) {
    EXPECT_EQ(fake.check("certificates", kNullPort), Lines{"ok : no TLS files are configured"});
    const penstock::test::CertificateAuthority authority;
    const auto issued = authority.issue({.common_name = "gateway", .days = 30});
    fake.file("/tls/g.pem", issued.certificate);
    fake.file("/tls/g.key", issued.key);
    fake.file("/tls/ca.pem", authority.pem());
    const std::string needs =
        std::string(kNullPort) + "tls-cert = /tls/g.pem\ntls-key = /tls/g.key\ntls-client-ca = /tls/ca.pem\n";
    const auto material = tls::read_material(
        {fake.machine.root.at("/tls/g.pem").string(), fake.machine.root.at("/tls/g.key").string(),
         fake.machine.root.at("/tls/ca.pem").string()},
        {});
    ASSERT_TRUE(material) << material.error().what;
    using std::chrono::hours;
    const auto at = [&](std::chrono::hours before_expiry) {
        fake.now = material->expires - before_expiry;
        return fake.check("certificates", needs).front();
    };
    EXPECT_EQ(at(hours(24 * 15)), "ok /tls/g.pem: CN=gateway expires in 15 days");
    EXPECT_EQ(at(hours(24 * 14 - 1)), "warning /tls/g.pem: CN=gateway expires in 13 days");
    EXPECT_EQ(at(hours(24 * 3 - 1)), "fault /tls/g.pem: CN=gateway expires in 2 days");
    EXPECT_EQ(at(hours(-1)), "fault /tls/g.pem: CN=gateway has expired");
    fake.now = material->valid_from - hours(1);
    EXPECT_THAT(fake.check("certificates", needs).front(), HasSubstr("is not valid yet"));
    fake.file("/tls/g.key", "rubbish");
    EXPECT_THAT(fake.check("certificates", needs).front(), StartsWith("fault /tls/g.pem: --tls-key: "));
}

TEST_F(Doctor, FileLimit) {
    EXPECT_EQ(fake.check("file-limit"),
              Lines{"unknown a program started here: /proc/self/limits cannot be read"});
    const auto limits = [](const std::string& hard) {
        return "Limit                     Soft Limit           Hard Limit           Units     \n"
               "Max open files            1024                 " +
               hard + "               files     \n";
    };
    fake.file("/proc/self/limits", limits("65536"));
    EXPECT_EQ(fake.check("file-limit"),
              Lines{"ok a program started here: may open 65536 files (/proc/self/limits)"});
    fake.file("/proc/self/limits", limits("unlimited"));
    EXPECT_EQ(fake.check("file-limit"),
              Lines{"ok a program started here: may open any number of files (/proc/self/limits)"});
    fake.file("/proc/self/limits", limits("4096"));
    EXPECT_EQ(fake.check("file-limit").back(), "  ulimit -n 65536");
    process("41", "penstockd");
    fake.file("/proc/41/limits", limits("1024"));
    EXPECT_EQ(fake.check("file-limit"),
              (Lines{"warning penstockd (process 41): may open 1024 files (/proc/41/limits), fewer "
                     "than 65536: many health check ports would exhaust them",
                     "  prlimit --nofile=:65536 --pid 41"}));
}

TEST_F(Doctor, FileLimitIsThatOfTheGatewayThatIsMeant) {
    fake.file("/proc/self/limits", "Max open files 1024 1000 files\n");
    fake.file("/proc/41/limits", "Max open files 1024 70041 files\n");
    fake.file("/proc/42/limits", "Max open files 1024 70042 files\n");
    process("41", "penstockd");
    const std::string meant = std::string(kNullPort) + "listen = 192.0.2.1:9106\nlisten = unix:/run/b.sock\n";
    const auto object = [&](const std::string& ini) {
        const std::string line = fake.check("file-limit", ini).front();
        return line.substr(0, line.find(')') + 1);
    };
    EXPECT_EQ(object(meant), "ok penstockd (process 41)") << "by its name";
    // The unit has limits, and starts a gateway with another file.
    fake.file("/lib/systemd/system/penstock-gateway.service",
              "[Service]\nExecStart=/usr/sbin/penstockd --config /etc/other.ini\nLimitNOFILE=4096:70000\n");
    EXPECT_EQ(object(meant), "ok penstockd (process 41)");
    fake.file("/lib/systemd/system/penstock-gateway.service",
              "[Service]\nExecStart=/usr/sbin/penstockd --config /etc/penstock/penstockd.ini\n"
              "LimitNOFILE=4096:70000\n");
    EXPECT_EQ(object(meant),
              "ok penstock-gateway.service: may open 70000 files "
              "(/lib/systemd/system/penstock-gateway.service)");
    fake.file("/etc/systemd/system/penstock-gateway.service.d/limits.conf", "[Service]\nLimitNOFILE=1024\n");
    EXPECT_EQ(
        fake.check("file-limit", meant),
        (Lines{
            "warning penstock-gateway.service: may open 1024 files "
            "(/etc/systemd/system/penstock-gateway.service.d/limits.conf), fewer than 65536: many health "
            "check ports would exhaust them",
            "  mkdir -p /etc/systemd/system/penstock-gateway.service.d && printf "
            "'[Service]\\nLimitNOFILE=65536\\n' >/etc/systemd/system/penstock-gateway.service.d/limits.conf "
            "&& systemctl daemon-reload"}));
    // Its socket names the gateway. Another process is connected to it.
    fake.file("/proc/self/net/unix",
              "Num       RefCount Protocol Flags    Type St Inode Path\n"
              "0000000000000000: 00000003 00000000 00000000 0001 03 98 /run/b.sock\n"
              "0000000000000000: 00000002 00000000 00010000 0001 01 97 /run/penstock/penstockd.sock\n"
              "0000000000000000: 00000002 00000000 00010000 0001 01 99 /run/b.sock\n");
    process("42", "penstockd");
    fake.link("/proc/41/fd/5", "socket:[97]");
    fake.link("/proc/42/fd/5", "socket:[99]");
    EXPECT_EQ(object(meant), "ok penstockd (process 42)");
    EXPECT_EQ(object(kNullPort), "ok penstockd (process 41)") << "the default socket";
}

TEST_F(Doctor, Ports) {
    const std::string needs = std::string(kNullPort) + "metrics-listen = 127.0.0.1:9105\n";
    EXPECT_EQ(fake.check("ports", needs), Lines{"unknown : /proc/self/net/tcp cannot be read"});
    const auto table = [](const std::string& row) { return "  sl  local_address rem_address   st\n" + row; };
    fake.file("/proc/self/net/tcp",
              table("   0: 0100007F:2391 00000000:0000 01 0:0 0:0 0 0 0 99\n"));  // established
    EXPECT_EQ(fake.check("ports", needs), Lines{"ok --metrics-listen 127.0.0.1:9105: free"});
    fake.file("/proc/self/net/tcp", table("   0: 00000000:2391 00000000:0000 0A 0:0 0:0 0 0 0 99\n"));
    EXPECT_EQ(fake.check("ports", needs),
              (Lines{"fault --metrics-listen 127.0.0.1:9105: in use by another program",
                     "  ss -ltnp 'sport = :9105'"}));
    process("12", "python3");
    fake.link("/proc/12/fd/3", "socket:[99]");
    EXPECT_EQ(fake.check("ports", needs).front(),
              "fault --metrics-listen 127.0.0.1:9105: in use by python3 (process 12)");
    process("12", "penstockd");
    EXPECT_EQ(fake.check("ports", needs),
              Lines{"ok --metrics-listen 127.0.0.1:9105: in use by the running penstockd"});
    EXPECT_EQ(fake.check("ports", std::string(kNullPort) + "metrics-listen = off\n"),
              Lines{"ok : penstockd listens on no TCP port"});
}

}  // namespace doctor_test
}  // namespace penstock::host
