// net_vhost: the host's side of a virtual machine's virtio-net, over a socket.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {

constinit const PmdProfile kVhostProfile = {
    .driver = "net_vhost",
    .family = "vhost-user",
    .binding = Binding::Software,
    .spread = RxSpread::None,
    .spread_reason = "the guest chooses the queue",
};

}  // namespace penstock::drivers
