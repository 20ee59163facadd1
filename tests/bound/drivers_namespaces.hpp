// SPDX-License-Identifier: Apache-2.0
// Network namespaces for the drivers' tests. The test itself moves into a new one, and peers live in
// namespaces of child processes that only wait. The namespaces have no names, so nothing can clash and
// nothing is left behind: the kernel removes them with the processes.
#pragma once

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace penstock::test {

// Runs a shell command; returns its exit status.
inline int run(const std::string& command) {
    return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str());
}

inline std::string output_of(const std::string& command) {
    std::string text;
    FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    std::array<char, 256> buffer;
    while (pipe != nullptr && fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) {
        text += buffer.data();
    }
    if (pipe != nullptr) {
        pclose(pipe);
    }
    return text;
}

// Moves this process into a separate namespace, once. Returns false, with the reason for GTEST_SKIP, if the
// privileges are missing.
inline bool in_own_namespace(std::string& why_not) {
    static const bool moved = [] { return unshare(CLONE_NEWNET) == 0 && run("ip link set lo up") == 0; }();
    if (!moved) {
        why_not = "needs root: no network namespace of its own";
    }
    return moved;
}

// A namespace with a process in it that waits for the end of the test.
class Peer {
 public:
    Peer() {
        int ready[2];
        if (pipe(ready) != 0) {
            return;
        }
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const bool moved = unshare(CLONE_NEWNET) == 0;
            const char byte = moved ? 'y' : 'n';
            if (write(ready[1], &byte, 1) != 1 || !moved) {
                _exit(1);
            }
            pause();
            _exit(0);
        }
        close(ready[1]);
        char byte = 'n';
        is_up_ = read(ready[0], &byte, 1) == 1 && byte == 'y' && run(inside("ip link set lo up")) == 0;
        close(ready[0]);
    }
    ~Peer() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    [[nodiscard]] bool is_up() const { return is_up_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::string inside(const std::string& command) const {
        return "nsenter -t " + std::to_string(pid_) + " -n sh -c '" + command + "'";
    }

 private:
    pid_t pid_ = -1;
    bool is_up_ = false;
};

// A veth pair: `ours` here, `theirs` in the peer's namespace with `addresses` ("10.0.0.2/24 2001:db8::2/64").
// Offloads that would produce frames not possible on a wire are off.
inline bool wire(const Peer& peer, const std::string& ours, const std::string& theirs,
                 const std::string& addresses, unsigned mtu = 1500) {
    const std::string size = " mtu " + std::to_string(mtu);
    const std::string bare = " tx off rx off tso off gso off gro off";
    return run("ip link add " + ours + size + " type veth peer name " + theirs + size + " netns " +
               std::to_string(peer.pid())) == 0 &&
           (run("ethtool -K " + ours + bare), run(peer.inside("ethtool -K " + theirs + bare)),
            run(peer.inside("for a in " + addresses + "; do ip addr add $a dev " + theirs +
                            " nodad || exit 1; done; ip link set " + theirs + " up"))) == 0;
}

// Waits until `done` returns true, calling `step` in between. The time limit exceeds all timers of the
// kernel: the machine may be busy.
inline bool eventually(const std::function<bool()>& done, const std::function<void()>& step,
                       std::chrono::milliseconds patience = std::chrono::milliseconds(60'000)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!done()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        step();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace penstock::test
