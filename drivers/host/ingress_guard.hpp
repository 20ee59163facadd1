// SPDX-License-Identifier: Apache-2.0
// Keeps Linux's own stack off the interface that af_packet takes its frames from. The kernel delivers every
// frame to the packet socket *and* to its own stack. Without a guard, the stack would also answer a client's
// SYN, with a reset.
//
//   wire -> driver -> packet socket (Penstock) -> netdev ingress: drop -> the kernel's stack never sees it
//
// The drop rule is in an nft table with `flags owner`. The table belongs to a netlink socket that this object
// keeps open, so the kernel removes it with the process, however the process ends.
#pragma once

#include <memory>
#include <string>

#include "dataplane/base/result.hpp"

struct nft_ctx;

namespace penstock::drivers {

class IngressGuard {
 public:
    // Unsupported or PermissionDenied: the kernel refused, with its message.
    static Result<std::unique_ptr<IngressGuard>> install(const std::string& interface);
    ~IngressGuard();
    IngressGuard(const IngressGuard&) = delete;
    IngressGuard& operator=(const IngressGuard&) = delete;

    [[nodiscard]] const std::string& table() const noexcept { return table_; }

 private:
    IngressGuard(nft_ctx* nft, std::string table) : nft_(nft), table_(std::move(table)) {}
    nft_ctx* nft_;
    std::string table_;
};

// Makes a name that nft accepts from any interface name: letters, digits and underscores. Pure.
[[nodiscard]] std::string guard_table_name(const std::string& interface, int pid);

}  // namespace penstock::drivers
