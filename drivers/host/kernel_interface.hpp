// SPDX-License-Identifier: Apache-2.0
// The Linux interface below a port that works through the kernel (af_packet, af_xdp). It serves only as the
// port's wire: no addresses, no IPv6 control traffic, no merged frames (GRO, LRO). The destructor restores
// the former settings; after a crash they stay changed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/port/notice.hpp"

namespace penstock::drivers {

// What was changed on an interface, and so has to be restored.
struct InterfaceChanges {
    int former_mtu = 0;  // 0: unchanged
    bool ipv6_was_on = false;
    bool gro_was_on = false;
    bool lro_was_on = false;
    short flags_added = 0;  // IFF_*
    bool operator==(const InterfaceChanges&) const = default;
};

class KernelInterface {
 public:
    // Prepares `name`: up, all multicast received (ND for the twin's addresses uses multicast), MTU at least
    // `mtu`, IPv6 off, GRO and LRO off. NotFound: no such interface. InvalidArgument: the interface has
    // global addresses, which belong on the twin; the kernel would answer for them as well. Unsupported: its
    // driver refuses the MTU. Failures that the port can tolerate are reported as notices.
    static Result<std::unique_ptr<KernelInterface>> prepare(const std::string& name, uint16_t mtu,
                                                            const NoticeSink& sink);
    ~KernelInterface();
    KernelInterface(const KernelInterface&) = delete;
    KernelInterface& operator=(const KernelInterface&) = delete;

    // Leaves the interface as it is: the process that follows restores it.
    [[nodiscard]] InterfaceChanges leave() { return std::exchange(changes_, {}); }
    // Restores these changes of the process before, too.
    void inherit(const InterfaceChanges& former);

    // True if the interface is up and has a carrier (IFF_RUNNING). False if there is no such interface.
    [[nodiscard]] static bool has_carrier(const std::string& name);

    // Empty: there is no such interface.
    [[nodiscard]] static std::optional<MacAddr> mac(const std::string& name);

    // Combined channels in use; 0 if the interface reports none.
    [[nodiscard]] static unsigned combined_channels(const std::string& name);

 private:
    explicit KernelInterface(std::string name) : name_(std::move(name)) {}
    Status refuse_addresses() const;
    Status raise_mtu(uint16_t mtu);
    void silence_ipv6(const NoticeSink& sink);
    void unglue_frames(const NoticeSink& sink);
    Status set_up();

    std::string name_;
    InterfaceChanges changes_;
};

}  // namespace penstock::drivers
