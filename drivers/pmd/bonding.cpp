// net_bonding: several ports as one (link aggregation).
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kBondingQuirks[] = {
    {"LACP (mode=4, 802.3ad) must send and receive at least every 100 ms, even without traffic, which "
     "workers do not do: refused",
     "doc/guides/prog_guide/link_bonding_poll_mode_drv_lib.rst, Link Aggregation 802.3AD"},
    {"members join when the bond is configured for the first time; only then does it report their common "
     "capabilities",
     "drivers/net/bonding/rte_eth_bond_pmd.c, bond_ethdev_configure()"},
    {"packet types, key length and table size are the minimum over the members; all members get the same key "
     "and table, so a packet reaches the same queue through any of them",
     "drivers/net/bonding/rte_eth_bond_api.c, eth_bond_slave_inherit_dev_info_rx_next(); rte_eth_bond_pmd.c, "
     "slave_configure()"},
    {"key and table that are read are the bond's own copies",
     "drivers/net/bonding/rte_eth_bond_pmd.c, bond_ethdev_rss_hash_conf_get()"},
};

}  // namespace

constinit const PmdProfile kBondingProfile = {
    .driver = "net_bonding",
    .family = "bonds of other ports",
    .binding = Binding::Software,
    .rss = {.kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable},
    .quirks = kBondingQuirks,
};

}  // namespace penstock::drivers
