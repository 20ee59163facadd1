// SPDX-License-Identifier: Apache-2.0
// Ensures one owner per port, socket and state file. Neither af_packet nor gRPC refuses a second process on
// the same interface or path, and both processes would then silently get half of everything. With a lock file
// the second start fails by name. The kernel releases flock() locks when their process dies, so a crash
// leaves only a file with a stale pid.
#pragma once

#include <string>
#include <utility>

#include "dataplane/base/result.hpp"

namespace penstock {

class FileLock {
 public:
    // Locks `path`, creating it (and its folder) if needed, and writes the pid of this process into it.
    // AlreadyExists: "`what` is in use by process 1234". PermissionDenied, Unavailable: the file cannot be
    // created.
    static Result<FileLock> acquire(const std::string& path, const std::string& what);

    FileLock() = default;  // holds nothing
    FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileLock& operator=(FileLock&& other) noexcept;
    ~FileLock();

 private:
    explicit FileLock(int fd) : fd_(fd) {}
    int fd_ = -1;
};

}  // namespace penstock
