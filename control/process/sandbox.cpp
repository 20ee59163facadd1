// SPDX-License-Identifier: Apache-2.0
#include "control/process/sandbox.hpp"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <vector>

namespace penstock::process {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which AUDIT_ARCH is it?"
#endif

// System calls of this architecture only; calls of other architectures are all refused.
constexpr int kRefused[] = {
    // other programs and processes
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_personality,
    // namespaces and mounts
    SYS_unshare,
    SYS_setns,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_swapon,
    SYS_swapoff,
    SYS_open_by_handle_at,
    SYS_quotactl,
    SYS_acct,
    // the kernel and its keys
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_syslog,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_userfaultfd,
    // names and clocks of the host
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    // users
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
};

std::unexpected<Error> failed(const char* step) {
    return fail(Errc::Unavailable, std::string("sandbox: ") + step + ": " + std::strerror(errno));
}

Status keep_capabilities(std::span<const int> kept) {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> data{};
    if (::syscall(SYS_capget, &header, data.data()) != 0) {
        return failed("capget");
    }
    std::array<uint32_t, 2> mask{};
    for (const int capability : kept) {
        mask[static_cast<size_t>(capability) / 32] |= 1U << (static_cast<unsigned>(capability) % 32);
    }
    const auto has = [](const std::array<uint32_t, 2>& set, int capability) {
        return (set[static_cast<size_t>(capability) / 32] &
                (1U << (static_cast<unsigned>(capability) % 32))) != 0;
    };
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // Requires CAP_SETPCAP. If a container or a unit has removed it, the bounding set is limited by that
    // container or unit.
    if (has({data[0].effective, data[1].effective}, CAP_SETPCAP)) {
        for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
            if (!has(mask, capability) && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
                return failed("bounding set");
            }
        }
    }
    for (size_t i = 0; i < data.size(); ++i) {
        data[i].effective &= mask[i];
        data[i].permitted &= mask[i];
        data[i].inheritable = 0;
    }
    return ::syscall(SYS_capset, &header, data.data()) == 0 ? Status{} : failed("capset");
}

Status install_filter(bool keeps_bpf) {
    std::vector<int> refused(std::begin(kRefused), std::end(kRefused));
    if (!keeps_bpf) {
        // libxdp mounts the BPF file system if it is missing, and libbpf probes features of the kernel.
        refused.insert(refused.end(), {SYS_bpf, SYS_mount, SYS_perf_event_open});
    }
    constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
    constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
    std::vector<sock_filter> program;
    const auto add = [&](sock_filter instruction) { program.push_back(instruction); };
    add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    add(BPF_STMT(BPF_RET | BPF_K, kRefuse));
    add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
    // x32 calls have this architecture but different numbers.
    constexpr uint32_t kX32Bit = 0x40000000;
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
    add(BPF_STMT(BPF_RET | BPF_K, kRefuse));
#endif
    for (const int number : refused) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
        add(BPF_STMT(BPF_RET | BPF_K, kRefuse));
    }
    add(BPF_STMT(BPF_RET | BPF_K, kAllow));
    sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0 ? Status{}
                                                                            : failed("seccomp filter");
}

}  // namespace

Status enter_sandbox(const SandboxOptions& options) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return failed("no_new_privs");
    }
    PENSTOCK_TRY_STATUS(keep_capabilities(options.capabilities));
    return install_filter(options.keeps_bpf);
}

}  // namespace penstock::process
