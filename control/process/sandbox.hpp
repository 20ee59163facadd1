// Gives up the rights that a daemon does not use, before its first thread starts: all threads inherit the result, and none can get them
// back. A fault in a parser then gives an attacker neither another program nor another part of the host.
#pragma once

#include <span>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::process {

struct SandboxOptions {
    std::span<const int>
        capabilities;  // CAP_*: of those that the process has, these stay; all others go, from the bounding set too
    bool keeps_bpf = false;  // bpf() stays allowed, and what its libraries need beside it
};

// no_new_privs, capabilities, and a seccomp filter that refuses (EPERM) system calls for other programs, processes, namespaces, mounts,
// kernel modules and clocks. Errors name the step; what was given up until then stays given up.
Status enter_sandbox(const SandboxOptions& options);

}  // namespace penstock::process
