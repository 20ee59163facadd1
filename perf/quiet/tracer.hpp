// SPDX-License-Identifier: Apache-2.0
// Counts the system calls of one thread of a child process, by ptrace. The kernel stops the thread at each of
// them and notifies the tracer, so none can be missed, whichever code makes it. Between system calls a traced
// thread runs at full speed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace penstock::perf {

class SystemCallTracer {
 public:
    // Attaches to a thread of a child. False if the kernel refuses.
    [[nodiscard]] bool attach(pid_t thread);
    // Handles all pending stops. Call it repeatedly, because a stopped thread waits.
    void look();
    // Detaches. The thread continues.
    void detach();

    [[nodiscard]] uint64_t calls() const;
    // Number of calls, by system call number.
    [[nodiscard]] const std::map<uint64_t, uint64_t>& by_number() const noexcept { return by_number_; }

 private:
    void on_stop(int status);

    pid_t thread_ = 0;
    std::map<uint64_t, uint64_t> by_number_;
};

}  // namespace penstock::perf
