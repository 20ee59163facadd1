// SPDX-License-Identifier: Apache-2.0
// The needs that penstockctl doctor reads from an INI file (control/host) are those of penstockd's own
// options.
#include <gtest/gtest.h>

#include "control/gateway/options/options.hpp"
#include "control/host/needs.hpp"

namespace penstock::gateway {
namespace needs_agree_test {

constexpr const char* kPort = "port = device=net_null0;twin=pen0\n";

class NeedsAgree : public testing::TestWithParam<const char*> {};

TEST_P(NeedsAgree, WithTheOptionsOfPenstockd) {
    const std::string ini = std::string(kPort) + GetParam();
    const auto options = Options::parse_ini(ini);
    ASSERT_TRUE(options) << options.error().what;
    const auto [needs, mistakes] = host::read_needs(ini);
    EXPECT_EQ(mistakes, std::vector<std::string>());
    EXPECT_EQ(needs.memory_mb, options->memory_mb);
    EXPECT_EQ(needs.no_huge, options->no_huge);
    EXPECT_EQ(needs.hugepage_size, options->hugepage_size);
    EXPECT_EQ(needs.cores.workers, options->cores.workers);
    EXPECT_EQ(needs.cores.worker_cores, options->cores.worker_cores);
    EXPECT_EQ(needs.cores.main_core, options->cores.main_core);
    EXPECT_EQ(needs.tls_cert, options->tls_cert);
    EXPECT_EQ(needs.tls_key, options->tls_key);
    EXPECT_EQ(needs.tls_client_ca, options->tls_client_ca);
    EXPECT_EQ(needs.announces_routes, options->vip_presence == VipPresenceMode::Routes ||
                                          options->vip_presence == VipPresenceMode::Arp);
    std::vector<std::string> wanted, found;
    for (const ListenAddress& address : options->listen) {
        if (!address.is_unix()) {
            wanted.push_back("--listen " + address.text);
        }
    }
    if (!options->metrics_listen.empty()) {
        wanted.push_back("--metrics-listen " + options->metrics_listen);
    }
    if (!options->healthz.empty()) {
        wanted.push_back("--healthz " + options->healthz);
    }
    for (const auto& listener : needs.listeners) {
        found.push_back(listener.option + " " + listener.text);
    }
    EXPECT_EQ(found, wanted);
    ASSERT_EQ(needs.ports.size(), options->ports.size());
    EXPECT_EQ(needs.ports[0].twin, options->ports[0].twin);
}

INSTANTIATE_TEST_SUITE_P(
    Files, NeedsAgree,
    testing::Values("", "mode = node\nnode-name = n\n", "metrics-listen = off\n", "healthz = 0.0.0.0:8080\n",
                    "mode = node\nnode-name = n\nhealthz = off\n",
                    "memory-mb = 1024\nno-huge =\nworkers = 2\nmain-core = 1\n",
                    "worker-cores = 1-2\nno-huge = off\n", "hugepage-size = auto\n", "hugepage-size = 2M\n",
                    "memory-mb = 1024\nhugepage-size = 1G\n",
                    "listen = 192.0.2.1:9106\nlisten = unix:/run/p.sock\ntls-cert = /c\ntls-key = "
                    "/k\ntls-client-ca = /a\n",
                    "vip-presence = routes\n", "vip-presence = arp\n", "vip-presence = on\n"));

}  // namespace needs_agree_test
}  // namespace penstock::gateway
