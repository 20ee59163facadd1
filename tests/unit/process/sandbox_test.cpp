// SPDX-License-Identifier: Apache-2.0
#include "control/process/sandbox.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/process/in_child.hpp"

namespace penstock::process {
namespace sandbox_test {

using test::exit_code_of;

std::string of_this_thread(const std::string& field) {
    std::ifstream status("/proc/thread-self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field + ":\t")) {
            return line.substr(field.size() + 2);
        }
    }
    return "";
}

constexpr int kKept[] = {CAP_NET_RAW};

TEST(Sandbox, KeepsTheNamedCapabilitiesAndNoOthers) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root has capabilities to give up";
    }
    EXPECT_EQ(exit_code_of([] {
                  if (!enter_sandbox({.capabilities = kKept})) {
                      return 1;
                  }
                  int wrong = 0;
                  // A thread that starts later has no more rights.
                  std::thread([&] {
                      const unsigned long long mask = 1ULL << CAP_NET_RAW;
                      for (const char* field : {"CapEff", "CapPrm", "CapBnd"}) {
                          wrong += (std::stoull(of_this_thread(field), nullptr, 16) & ~mask) == 0 ? 0 : 1;
                      }
                      wrong += of_this_thread("CapAmb") == "0000000000000000" ? 0 : 1;
                      wrong += of_this_thread("NoNewPrivs") == "1" ? 0 : 1;
                      wrong += of_this_thread("Seccomp") == "2" ? 0 : 1;
                  }).join();
                  return wrong;
              }),
              0);
}

TEST(Sandbox, RefusesOtherProgramsAndNamespaces) {
    EXPECT_EQ(exit_code_of([] {
                  if (!enter_sandbox({.capabilities = {}})) {
                      return 1;
                  }
                  ::execl("/bin/true", "true", nullptr);
                  if (errno != EPERM) {
                      return 2;
                  }
                  if (::syscall(SYS_bpf, 0, nullptr, 0) != -1 || errno != EPERM) {
                      return 3;
                  }
                  if (::syscall(SYS_unshare, 0) != -1 ||
                      errno != EPERM) {  // without flags it would succeed for every process
                      return 4;
                  }
                  return ::getpid() > 0 ? 0 : 5;
              }),
              0);
}

TEST(Sandbox, LeavesBpfWhereItIsNeeded) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "the kernel refuses bpf() to others before it looks at the command";
    }
    EXPECT_EQ(exit_code_of([] {
                  constexpr int kForBpf[] = {CAP_SYS_ADMIN, CAP_BPF};
                  if (!enter_sandbox({.capabilities = kForBpf, .keeps_bpf = true})) {
                      return 1;
                  }
                  errno = 0;
                  return ::syscall(SYS_bpf, -1, nullptr, 0) == -1 && errno != EPERM ? 0 : 2;
              }),
              0);
}

}  // namespace sandbox_test
}  // namespace penstock::process
