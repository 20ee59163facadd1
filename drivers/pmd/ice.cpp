// net_ice: Intel E810 and E820 series.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kIceQuirks[] = {
    {"without its DDP package (/lib/firmware/intel/ice/ddp) it starts only with safe-mode-support=1, and "
     "then has no RSS",
     "doc/guides/nics/ice.rst, Safe Mode Support"},
    {"a rule of its flow director matches a whole L4 port only, so no rule can cover a worker's SNAT ports",
     "drivers/net/ice/ice_fdir_filter.c, ice_fdir_parse_pattern()"},
    {"symmetric Toeplitz and simple xor can only be set by rte_flow, which Penstock never does",
     "drivers/net/ice/ice_hash.c, ice_hash_parse_action()"},
};

}  // namespace

constinit const PmdProfile kIceProfile = {
    .driver = "net_ice",
    .family = "Intel E810, E822, E823",
    .rss = kIntelRss52,
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                        FlowExpectation::kCount | FlowExpectation::kRss | FlowExpectation::kPassthru},
    .quirks = kIceQuirks,
};

}  // namespace penstock::drivers
