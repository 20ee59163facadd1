// Keeps Linux's own stack off the interface that af_packet takes its frames from. The kernel delivers every frame to the packet socket
// *and* to itself: without a guard it would answer a client's SYN with a reset beside us, and its own ARP and MLD would be taken for the
// wire's.
//
//   wire -> driver -> packet socket (Penstock) -> netdev ingress: drop -> the kernel's stack never sees it
//
// The drop stands in an nft table with `flags owner`: it belongs to a netlink socket that this object keeps open, so that the kernel
// removes it with the process however that ends. The rest is put back by the destructor, and by nobody after a crash: IPv6 off, receive
// offloads that would glue frames together off, the MTU, and the interface up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/base/result.hpp"
#include "drivers/notice.hpp"

struct nft_ctx;

namespace penstock::drivers {

class IngressGuard {
 public:
    // Prepares `interface` and stands guard. InvalidArgument: it carries global addresses, which belong on the twin. NotFound: no such
    // interface. Unsupported or PermissionDenied: the kernel refused the nft table, with its words. What can be done without
    // (IPv6 off where /proc/sys is read-only, offloads that cannot be switched) is a notice.
    static Result<std::unique_ptr<IngressGuard>> install(const std::string& interface, const NoticeSink& sink);
    ~IngressGuard();
    IngressGuard(const IngressGuard&) = delete;
    IngressGuard& operator=(const IngressGuard&) = delete;

    [[nodiscard]] const std::string& table() const noexcept { return table_; }

 private:
    IngressGuard() = default;
    std::string interface_;
    std::string table_;
    nft_ctx* nft_ = nullptr;
    std::string ipv6_was_;        // the sysctl's former text; "" where it was not touched
    uint32_t offloads_were_ = 0;  // bits of receive offloads to switch on again
};

}  // namespace penstock::drivers
