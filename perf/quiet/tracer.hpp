// Counts the system calls of one thread of a child process, by ptrace: the kernel stops the thread at each of them and tells us, so none
// can be missed, whoever makes it. Between system calls a traced thread runs at full speed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace penstock::perf {

class SystemCallTracer {
 public:
    // Attaches to a thread of a child; false: the kernel refuses.
    [[nodiscard]] bool attach(pid_t thread);
    // Deals with every stop that has happened; call it again and again, for a stopped thread waits.
    void look();
    // Lets go. The thread runs on.
    void detach();

    [[nodiscard]] uint64_t calls() const;
    // How often, by number.
    [[nodiscard]] const std::map<uint64_t, uint64_t>& by_number() const noexcept { return by_number_; }

 private:
    void on_stop(int status);

    pid_t thread_ = 0;
    std::map<uint64_t, uint64_t> by_number_;
};

}  // namespace penstock::perf
