// net_virtio_user: virtio towards a vhost-user socket or the kernel's vhost-net.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {

constinit const PmdProfile kVirtioUserProfile = {
    .driver = "net_virtio_user",
    .family = "virtio-user",
    .binding = Binding::Software,
    .spread = RxSpread::None,
    .spread_reason = "the vhost side chooses the queue",
};

}  // namespace penstock::drivers
