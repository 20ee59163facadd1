// The Linux interface under a port that works through the kernel (af_packet, af_xdp). It is the port's wire and nothing else: no addresses,
// no IPv6 chatter, no glued frames. The destructor puts back what was changed; after a crash nobody does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/result.hpp"
#include "drivers/port/notice.hpp"

namespace penstock::drivers {

class KernelInterface {
 public:
    // Prepares `name`: up, all multicast received (ND for the twin's addresses comes by multicast), MTU at least `mtu`, IPv6 off, GRO and
    // LRO off. NotFound: no such interface. InvalidArgument: it carries global addresses, which belong on the twin; the kernel would
    // answer for them beside us. Unsupported: its driver refuses the MTU. What the port can do without is a notice.
    static Result<std::unique_ptr<KernelInterface>> prepare(const std::string& name, uint16_t mtu,
                                                            const NoticeSink& sink);
    ~KernelInterface();
    KernelInterface(const KernelInterface&) = delete;
    KernelInterface& operator=(const KernelInterface&) = delete;

    // Its cable is plugged in and the other end is there, and it is up. False where there is no such interface.
    [[nodiscard]] static bool has_carrier(const std::string& name);

    // Combined channels that the interface has in use; 0 where it reports none.
    [[nodiscard]] static unsigned combined_channels(const std::string& name);

 private:
    explicit KernelInterface(std::string name) : name_(std::move(name)) {}
    Status refuse_addresses() const;
    Status raise_mtu(uint16_t mtu);
    void silence_ipv6(const NoticeSink& sink);
    void unglue_frames(const NoticeSink& sink);
    Status set_up();

    std::string name_;
    int former_mtu_ = 0;  // 0: unchanged
    bool ipv6_was_on_ = false;
    bool gro_was_on_ = false;
    bool lro_was_on_ = false;
    short flags_added_ = 0;
};

}  // namespace penstock::drivers
