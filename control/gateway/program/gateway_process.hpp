// SPDX-License-Identifier: Apache-2.0
// A gateway process as its supervisor has it: the child, its socket, its binary, and the log of a successor.
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>

#include "control/base/descriptor.hpp"
#include "control/gateway/upgrade/line_tail.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::gateway {

// The path of this program, which may lead to a newer binary by now.
[[nodiscard]] std::string own_path();

// Moved as a whole; one thread.
class GatewayProcess {
 public:
    enum class Role {
        Current,
        Successor,  // waits for the order to take over
    };

    GatewayProcess() = default;  // none
    // Starts `binary`, opened for reading, with the arguments of this process. The kernel ends the child with
    // this process. The log of a successor passes through a pipe until it forwards. `memory` is in its socket
    // when it starts: how the process that forwards has laid out its memory. Unavailable: the step that
    // failed.
    static Result<GatewayProcess> start(char** arguments, Descriptor binary, Role role,
                                        const v1::UpgradeMemory& memory = {});

    [[nodiscard]] bool runs() const { return pid_ > 0; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Readable when the process has ended.
    [[nodiscard]] int process_fd() const { return process_.get(); }
    [[nodiscard]] int socket_fd() const { return socket_.get(); }
    [[nodiscard]] int log_fd() const { return log_.get(); }  // -1: none, or it has ended
    [[nodiscard]] Descriptor take_binary() { return std::move(binary_); }

    // Copies what is in the pipe of the log to this process's. Never waits for the child.
    void copy_log();
    [[nodiscard]] std::deque<std::string> last_lines() const { return tail_.lines(); }

    // Whether it has ended since the last call; `status()` is that of waitpid() then.
    bool has_ended();
    [[nodiscard]] int status() const { return status_; }
    // "exit code 3", "signal 9"
    [[nodiscard]] std::string end_text() const;
    void send_signal(int number) const;
    // SIGKILL; returns when it has ended.
    void kill_and_wait();

 private:
    pid_t pid_ = 0;  // 0: none
    int status_ = 0;
    Descriptor process_, socket_, binary_, log_;
    LineTail tail_;
};

}  // namespace penstock::gateway
