// SPDX-License-Identifier: Apache-2.0
// Signals of a daemon as a readable descriptor. SIGTERM and SIGINT stop the daemon, SIGHUP makes it read its
// files again. Every other signal whose default action would end the process is received too, so that the
// program can log it and continue. Exceptions keep their default action: faults (SIGSEGV, SIGABRT, ...),
// SIGQUIT, which requests a core dump, and job control. SIGPIPE is ignored: a write to a closed connection
// returns an error instead.
#pragma once

#include <string>
#include <utility>

#include "dataplane/base/result.hpp"

namespace penstock::process {

struct Signal {
    enum class Meaning { Stop, Reload, Unknown };
    int number = 0;
    Meaning meaning = Meaning::Unknown;
    [[nodiscard]] std::string name() const;  // "SIGHUP", "SIGRTMIN+3"
};

class Signals {
 public:
    // Blocks the signals. Call before any thread starts, because threads inherit the mask.
    static Result<Signals> block();
    Signals(Signals&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Signals& operator=(Signals&&) = delete;
    ~Signals();
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // The next pending signal; its number is 0 if there is none. Never blocks.
    [[nodiscard]] Signal take() noexcept;

 private:
    explicit Signals(int fd) noexcept : fd_(fd) {}
    int fd_;
};

}  // namespace penstock::process
