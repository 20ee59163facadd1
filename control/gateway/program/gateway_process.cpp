// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/gateway_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "control/gateway/upgrade/handover.hpp"
#include "control/gateway/upgrade/messages.hpp"

namespace penstock::gateway {
namespace {

std::unexpected<Error> failed(const char* step) {
    return fail(Errc::Unavailable, std::string(step) + ": " + std::strerror(errno));
}

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            return;  // the log has no reader
        }
        text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
    }
}

// The part of the child: becomes the gateway.
[[noreturn]] void run_binary(int binary, char** arguments, int socket, int log) {
    fcntl(socket, F_SETFD, 0);
    // The child sends the keep-alives that the service manager expects of its parent.
    const char* watched = getenv("WATCHDOG_PID");
    if (watched != nullptr && watched == std::to_string(getppid())) {
        setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
    }
    setenv(kUpgradeSocketVariable, std::to_string(socket).c_str(), 1);
    if (log >= 0) {
        setenv(kUpgradeSuccessorVariable, "1", 1);
        setenv(kUpgradeLogVariable, std::to_string(dup(STDERR_FILENO)).c_str(), 1);
        dup2(log, STDERR_FILENO);
    }
    fexecve(binary, arguments, environ);
    dprintf(STDERR_FILENO, "penstockd: the binary cannot be executed: %s\n", std::strerror(errno));
    _exit(EXIT_FAILURE);
}

}  // namespace

std::string own_path() {
    std::string path(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length > 0 ? static_cast<size_t>(length) : 0);
    return path;
}

Result<GatewayProcess> GatewayProcess::start(char** arguments, Descriptor binary, Role role,
                                             const v1::UpgradeMemory& memory) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return failed("socketpair");
    }
    GatewayProcess started;
    started.socket_ = Descriptor(pair[0]);
    const Descriptor theirs(pair[1]);
    if (memory.workers() != 0) {
        v1::UpgradeNote note;
        *note.mutable_memory() = memory;
        // Without it the successor creates its memory later.
        static_cast<void>(send_message(started.socket_.get(), UpgradeMessage::Memory, note));
    }
    Descriptor log;
    if (role == Role::Successor) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            return failed("pipe");
        }
        started.log_ = Descriptor(ends[0]);
        log = Descriptor(ends[1]);
        fcntl(started.log_.get(), F_SETFL, O_NONBLOCK);
    }
    const pid_t parent = getpid();
    started.pid_ = fork();
    if (started.pid_ < 0) {
        return failed("fork");
    }
    if (started.pid_ == 0) {
        // A gateway without its supervisor could not be stopped by the process id that others have.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        run_binary(binary.get(), arguments, theirs.get(), log.get());
    }
    started.process_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, started.pid_, 0)));
    started.binary_ = std::move(binary);
    fcntl(started.socket_.get(), F_SETFL, O_NONBLOCK);
    return started;
}

void GatewayProcess::copy_log() {
    std::array<char, 4096> text{};
    while (log_.is_open()) {
        const ssize_t got = ::read(log_.get(), text.data(), text.size());
        if (got > 0) {
            const std::string_view part(text.data(), static_cast<size_t>(got));
            tail_.add(part);
            write_all(STDERR_FILENO, part);
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            log_ = Descriptor();
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

bool GatewayProcess::has_ended() {
    if (!runs() || waitpid(pid_, &status_, WNOHANG) != pid_) {
        return false;
    }
    pid_ = 0;
    copy_log();
    return true;
}

std::string GatewayProcess::end_text() const {
    return WIFSIGNALED(status_) ? "signal " + std::to_string(WTERMSIG(status_))
                                : "exit code " + std::to_string(WEXITSTATUS(status_));
}

void GatewayProcess::send_signal(int number) const {
    if (runs()) {
        kill(pid_, number);
    }
}

void GatewayProcess::kill_and_wait() {
    if (runs()) {
        kill(pid_, SIGKILL);
        waitpid(pid_, &status_, 0);
        pid_ = 0;
    }
}

}  // namespace penstock::gateway
