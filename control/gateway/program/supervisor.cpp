// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/gateway/upgrade/handover.hpp"
#include "control/gateway/upgrade/messages.hpp"
#include "control/gateway/upgrade/upgrade_steps.hpp"
#include "control/log/log.hpp"
#include "control/process/signals.hpp"
#include "drivers/host/ingress_guard.hpp"

namespace penstock::gateway {
namespace {

using Clock = UpgradeSteps::Clock;

// A gateway process.
struct Gateway {
    pid_t pid = 0;  // 0: none
    Descriptor process, socket, binary;

    [[nodiscard]] bool runs() const { return pid > 0; }
};

class Supervisor {
 public:
    Supervisor(char** arguments, std::vector<std::string> guarded)
        : arguments_(arguments), guarded_(std::move(guarded)) {}
    int run();

 private:
    Status start(Gateway& gateway, Descriptor binary, bool is_successor);
    void request_upgrade();
    void take(UpgradeSteps::Result result);
    void obey(UpgradeSteps::Order order);
    void hear_signals(process::Signals& signals);
    void hear(Gateway& gateway);
    bool has_ended(Gateway& gateway);
    void guard_ports();
    void begin_current(Descriptor binary);

    char** arguments_;
    std::vector<std::string> guarded_;
    std::vector<std::unique_ptr<drivers::IngressGuard>> guards_;  // during an upgrade
    std::string path_;  // of the program; a newer one may be there at the next upgrade
    UpgradeSteps steps_;
    Gateway current_, successor_;
    std::vector<Gateway> retired_;  // handed over, and release their memory
    std::vector<Descriptor> twins_;
    int status_ = 0;  // exit status of the current process
    bool is_over_ = false;
};

std::string own_path() {
    std::string path(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length > 0 ? static_cast<size_t>(length) : 0);
    return path;
}

Status Supervisor::start(Gateway& gateway, Descriptor binary, bool is_successor) {
    if (!binary.is_open()) {
        return fail(Errc::NotFound, "binary " + path_ + ": " + std::strerror(errno));
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return fail(Errc::Unavailable, std::string("socketpair: ") + std::strerror(errno));
    }
    Descriptor ours(pair[0]), theirs(pair[1]);
    const std::string number = std::to_string(theirs.get());
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
        return fail(Errc::Unavailable, std::string("fork: ") + std::strerror(errno));
    }
    if (pid == 0) {
        // A gateway without its supervisor could not be stopped by the process id that others have.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        fcntl(theirs.get(), F_SETFD, 0);
        setenv(kUpgradeSocketVariable, number.c_str(), 1);
        if (is_successor) {
            setenv(kUpgradeSuccessorVariable, "1", 1);
        }
        fexecve(binary.get(), arguments_, environ);
        dprintf(STDERR_FILENO, "penstockd: binary %s: %s\n", path_.c_str(), std::strerror(errno));
        _exit(EXIT_FAILURE);
    }
    gateway.pid = pid;
    gateway.process = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    gateway.socket = std::move(ours);
    gateway.binary = std::move(binary);
    fcntl(gateway.socket.get(), F_SETFL, O_NONBLOCK);
    return {};
}

void Supervisor::begin_current(Descriptor binary) {
    current_ = Gateway();
    if (auto started = start(current_, std::move(binary), false); !started) {
        log::get("control").error("penstockd cannot be started: {}", started.error().what);
        status_ = EXIT_FAILURE << 8;
        is_over_ = true;
    }
}

// The twins stay, and with them the addresses that Linux answers for. Without a guard it would reset
// connections while no gateway process has the interface.
void Supervisor::guard_ports() {
    for (const std::string& interface : guarded_) {
        if (auto guard = drivers::IngressGuard::install(interface)) {
            guards_.push_back(std::move(*guard));
        } else {
            log::get("control").warn("{}", guard.error().what);
        }
    }
}

void Supervisor::request_upgrade() {
    if (steps_.step() == UpgradeSteps::Step::Idle) {
        if (access(path_.c_str(), X_OK) != 0) {
            log::get("control").error("the upgrade is refused: binary {}: {}", path_, std::strerror(errno));
            return;
        }
        if (twins_.empty()) {
            log::get("control").error("the upgrade is refused: the gateway does not forward yet");
            return;
        }
    }
    take(steps_.take(UpgradeSteps::Event::Requested, Clock::now()));
}

void Supervisor::take(UpgradeSteps::Result result) {
    if (!result.remark.empty()) {
        result.is_error ? log::get("control").error("{}", result.remark)
                        : log::get("control").info("{}", result.remark);
    }
    for (const UpgradeSteps::Order order : result.orders) {
        obey(order);
    }
    if (steps_.step() == UpgradeSteps::Step::Idle) {
        guards_.clear();  // the current process has its own
    }
}

void Supervisor::obey(UpgradeSteps::Order order) {
    using Order = UpgradeSteps::Order;
    switch (order) {
        case Order::StartSuccessor:
            guard_ports();
            successor_ = Gateway();
            if (auto started = start(successor_, Descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC)), true);
                !started) {
                log::get("control").error("{}", started.error().what);
                take(steps_.take(UpgradeSteps::Event::SuccessorEnded, Clock::now()));
            }
            break;
        case Order::TellHandOver:
            static_cast<void>(send_message(current_.socket.get(), UpgradeMessage::HandOver));
            break;
        case Order::TellTakeOver: {
            std::vector<int> twins;
            for (const Descriptor& twin : twins_) {
                twins.push_back(twin.get());
            }
            static_cast<void>(send_message(successor_.socket.get(), UpgradeMessage::TakeOver, twins));
            break;
        }
        case Order::KillFormer:
            kill(current_.pid, SIGKILL);
            break;
        case Order::KillSuccessor:
            kill(successor_.pid, SIGKILL);
            break;
        case Order::SuccessorIsCurrent:
            if (current_.runs()) {
                retired_.push_back(std::move(current_));
            }
            current_ = std::exchange(successor_, Gateway());
            break;
        case Order::StartFormerBinary: {
            // Its ports are closed, but it may still be busy with its memory.
            if (current_.runs()) {
                kill(current_.pid, SIGKILL);
                waitpid(current_.pid, nullptr, 0);
            }
            // It makes the twins anew.
            twins_.clear();
            begin_current(std::move(current_.binary));
            break;
        }
        case Order::End:
            is_over_ = true;
            break;
    }
}

void Supervisor::hear_signals(process::Signals& signals) {
    for (auto signal = signals.take(); signal.number != 0; signal = signals.take()) {
        if (signal.number == SIGUSR2) {
            request_upgrade();
            continue;
        }
        if (current_.runs()) {
            kill(current_.pid, signal.number);
        }
        if (successor_.runs()) {
            // A successor that is not needed yet would hear the signal only when it takes over.
            const bool is_spare = signal.meaning == process::Signal::Meaning::Stop &&
                                  steps_.step() == UpgradeSteps::Step::Preparing;
            kill(successor_.pid, is_spare ? SIGKILL : signal.number);
        }
    }
}

void Supervisor::hear(Gateway& gateway) {
    while (auto received = receive_message(gateway.socket.get())) {
        switch (received->message) {
            case UpgradeMessage::Twins:
                twins_ = std::move(received->descriptors);
                break;
            case UpgradeMessage::Prepared:
                take(steps_.take(UpgradeSteps::Event::Prepared, Clock::now()));
                break;
            case UpgradeMessage::Forwards:
                if (&gateway == &successor_) {
                    take(steps_.take(UpgradeSteps::Event::Forwards, Clock::now()));
                    return;  // it is the current process now
                }
                break;
            case UpgradeMessage::HandedOver:
                take(steps_.take(UpgradeSteps::Event::HandedOver, Clock::now()));
                break;
            case UpgradeMessage::HandOver:
            case UpgradeMessage::TakeOver:
                break;
        }
    }
}

bool Supervisor::has_ended(Gateway& gateway) {
    int status = 0;
    if (!gateway.runs() || waitpid(gateway.pid, &status, WNOHANG) != gateway.pid) {
        return false;
    }
    gateway.pid = 0;
    if (&gateway == &current_) {
        status_ = status;
    }
    return true;
}

int Supervisor::run() {
    auto signals = process::Signals::block();
    if (!signals) {
        log::get("control").error("cannot start: {}", signals.error().what);
        return EXIT_FAILURE;
    }
    path_ = own_path();
    begin_current(Descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC)));
    while (!is_over_) {
        std::vector<pollfd> waited{{.fd = signals->fd(), .events = POLLIN, .revents = 0}};
        for (const Gateway* gateway : {&current_, &successor_}) {
            if (gateway->runs()) {
                waited.push_back({.fd = gateway->process.get(), .events = POLLIN, .revents = 0});
                waited.push_back({.fd = gateway->socket.get(), .events = POLLIN, .revents = 0});
            }
        }
        for (const Gateway& gateway : retired_) {
            waited.push_back({.fd = gateway.process.get(), .events = POLLIN, .revents = 0});
        }
        int timeout_ms = -1;
        if (const auto deadline = steps_.deadline()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
            timeout_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
        }
        poll(waited.data(), waited.size(), timeout_ms);
        hear_signals(*signals);
        // Messages first: a process may have ended after it has sent them.
        for (Gateway* gateway : {&current_, &successor_}) {
            if (gateway->socket.is_open()) {
                hear(*gateway);
            }
        }
        if (has_ended(successor_)) {
            take(steps_.take(UpgradeSteps::Event::SuccessorEnded, Clock::now()));
        }
        if (has_ended(current_)) {
            take(steps_.take(UpgradeSteps::Event::FormerEnded, Clock::now()));
        }
        std::erase_if(retired_, [this](Gateway& gateway) { return has_ended(gateway); });
        take(steps_.take_time(Clock::now()));
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : EXIT_FAILURE;
}

}  // namespace

int supervise(char** arguments, std::vector<std::string> guarded) {
    return Supervisor(arguments, std::move(guarded)).run();
}

}  // namespace penstock::gateway
