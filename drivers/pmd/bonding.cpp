// net_bonding: several ports as one (link aggregation).
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kBondingQuirks[] = {
    {"LACP (mode=4, 802.3ad) wants to send and receive at least every 100 ms, also when there is nothing to "
     "send, which workers do not do: "
     "refused",
     "doc/guides/prog_guide/link_bonding_poll_mode_drv_lib.rst, Link Aggregation 802.3AD"},
    {"members join when the bond is configured for the first time, and only then it tells what they have in "
     "common",
     "drivers/net/bonding/rte_eth_bond_pmd.c, bond_ethdev_configure()"},
    {"kinds, key length and table size are the least of what the members have; each gets the same key and "
     "table, so it does not matter by "
     "which a packet comes",
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
