// SPDX-License-Identifier: Apache-2.0
// Runs a check in a child process, for what a test program cannot undo: a sandbox, a mask of signals.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::process::test {

// The exit code of the child, 0 if the check succeeds; 128 plus the signal that killed it.
inline int exit_code_of(int (*child)()) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::_exit(child());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace penstock::process::test
