// net_ring: rings in memory.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {

constinit const PmdProfile kRingProfile = {
    .driver = "net_ring",
    .family = "rings in memory",
    .binding = Binding::Software,
    .spread = RxSpread::None,
    .spread_reason = "the writer of the ring chooses the queue",
};

}  // namespace penstock::drivers
