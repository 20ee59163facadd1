// SPDX-License-Identifier: Apache-2.0
// Drops the rights that a daemon does not use, before its first thread starts: all threads inherit the
// result, and none can regain them. An attacker who exploits a parser then cannot start another program or
// reach another part of the host.
#pragma once

#include <span>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::process {

struct SandboxOptions {
    // CAP_*: kept if the process has them; all others are dropped, also from the bounding set.
    std::span<const int> capabilities;
    bool keeps_bpf = false;  // permits bpf() and the calls that its libraries need beside it
};

// Sets no_new_privs and the capabilities, and installs a seccomp filter that refuses (EPERM) system calls for
// other programs, processes, namespaces, mounts, kernel modules and clocks. Errors name the step; rights
// dropped before the error stay dropped.
Status enter_sandbox(const SandboxOptions& options);

}  // namespace penstock::process
