// SPDX-License-Identifier: Apache-2.0
#include "perf/quiet/tracer.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <csignal>

#include <numeric>

namespace penstock::perf {
namespace {

constexpr int kSystemCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

// ptrace takes numbers in pointer arguments.
template <typename T>
void* as_pointer(T number) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(number));
}

}  // namespace

bool SystemCallTracer::attach(pid_t thread) {
    thread_ = thread;
    by_number_.clear();
    if (ptrace(PTRACE_SEIZE, thread, nullptr, as_pointer(PTRACE_O_TRACESYSGOOD)) != 0 ||
        ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) {
        return false;
    }
    int status = 0;
    if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
        return false;
    }
    on_stop(status);
    return true;
}

void SystemCallTracer::look() {
    int status = 0;
    while (waitpid(thread_, &status, __WALL | WNOHANG) == thread_ && WIFSTOPPED(status)) {
        on_stop(status);
    }
}

void SystemCallTracer::on_stop(int status) {
    const int signal = WSTOPSIG(status);
    int deliver = 0;
    if (signal == kSystemCallStop) {
        __ptrace_syscall_info info{};
        if (ptrace(PTRACE_GET_SYSCALL_INFO, thread_, as_pointer(sizeof(info)), &info) > 0 &&
            info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            ++by_number_[info.entry.nr];
        }
    } else if (status >> 16 != PTRACE_EVENT_STOP) {
        deliver = signal;  // a signal for the thread, which must receive it
    }
    ptrace(PTRACE_SYSCALL, thread_, nullptr, as_pointer(deliver));
}

void SystemCallTracer::detach() {
    ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    int status = 0;
    while (waitpid(thread_, &status, __WALL) == thread_ && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_STOP) {
            ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
            return;
        }
        on_stop(status);
    }
}

uint64_t SystemCallTracer::calls() const {
    return std::accumulate(by_number_.begin(), by_number_.end(), uint64_t{0},
                           [](uint64_t sum, const auto& row) { return sum + row.second; });
}

}  // namespace penstock::perf
