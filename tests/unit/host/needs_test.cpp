// SPDX-License-Identifier: Apache-2.0
#include "control/host/needs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::host {
namespace needs_test {

using Texts = std::vector<std::string>;

Texts listeners_of(const Needs& needs) {
    Texts texts;
    for (const Needs::Listener& listener : needs.listeners) {
        texts.push_back(listener.option + " " + listener.text + " " +
                        (listener.address ? listener.address->to_string() : "?") + " " +
                        std::to_string(listener.port));
    }
    return texts;
}

TEST(Needs, TheOptionsThatNeedSomething) {
    const auto [needs, mistakes] = read_needs(R"(# a node
port = device=0000:03:00.0;twin=pen0;address=192.0.2.1/24;mtu=9000
port = device=net_af_packet1,iface=eth1;twin=pen1
port = device=net_bonding0,mode=active-backup,member=0000:04:00.0,member=05:00.0;twin=pen2
worker-cores = 2-3
main-core = 1
memory-mb = 4096
no-huge =
mode = node
listen = unix:/run/penstock/penstockd.sock
listen = [::]:9106
tls-cert = /etc/penstock/g.pem
tls-key = /etc/penstock/g.key
tls-client-ca = /etc/penstock/ca.pem
vip-presence = arp
label = zone=a
)");
    EXPECT_EQ(mistakes, Texts());
    EXPECT_EQ(needs.pci_devices(), (Texts{"0000:03:00.0", "0000:04:00.0", "0000:05:00.0"}));
    EXPECT_EQ(needs.interfaces(), Texts{"eth1"});
    EXPECT_EQ(needs.ports[2].twin, "pen2");
    EXPECT_EQ(needs.cores.worker_cores, (std::vector<unsigned>{2, 3}));
    EXPECT_EQ(needs.cores.main_core, 1U);
    EXPECT_EQ(needs.memory_mb, 4096U);
    EXPECT_TRUE(needs.no_huge);
    EXPECT_TRUE(needs.announces_routes);
    EXPECT_EQ(needs.tls_client_ca, "/etc/penstock/ca.pem");
    EXPECT_EQ(listeners_of(needs),
              (Texts{"--listen [::]:9106 :: 9106", "--metrics-listen 127.0.0.1:9105 127.0.0.1 9105",
                     "--healthz 0.0.0.0:10256 0.0.0.0 10256"}));
}

TEST(Needs, AWrongValueIsNamedAndItsDefaultStays) {
    const auto [needs, mistakes] = read_needs(
        "port = device=eth0;twin=pen0\nmemory-mb = much\nworker-cores = x\n"
        "metrics-listen = off\nlisten = host\nhealthz = 1.2.3.4:0\n");
    EXPECT_THAT(mistakes, testing::ElementsAre(testing::StartsWith("--port: device \"eth0\""),
                                               testing::StartsWith("--memory-mb: \"much\""),
                                               testing::StartsWith("--worker-cores: \"x\""),
                                               testing::StartsWith("--listen: \"host\""),
                                               testing::StartsWith("--healthz: \"1.2.3.4:0\"")));
    EXPECT_EQ(needs.memory_mb, 512U);
    EXPECT_TRUE(needs.ports.empty());
    EXPECT_TRUE(needs.listeners.empty());
}

TEST(Needs, ALineThatIsNoOption_IsTheOnlyMistake) {
    EXPECT_EQ(read_needs("memory-mb = 64\nrubbish\n").mistakes.size(), 1U);
}

}  // namespace needs_test
}  // namespace penstock::host
