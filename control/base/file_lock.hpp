// One owner per port and per socket. Neither af_packet nor gRPC refuses a second process on the same interface or path, and both would
// then get half of everything in silence; a lock file makes the second start fail by name. flock() locks die with their process, so a
// crash leaves nothing to clean up but an empty file.
#pragma once

#include <string>
#include <utility>

#include "dataplane/base/result.hpp"

namespace penstock {

class FileLock {
 public:
    // Locks `path`, creating it (and its folder) where needed, and writes our pid into it. AlreadyExists: "`what` is in use by process
    // 1234". PermissionDenied, Unavailable: the file cannot be made.
    static Result<FileLock> acquire(const std::string& path, const std::string& what);

    FileLock() = default;  // holds nothing
    FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
    FileLock& operator=(FileLock&& other) noexcept;
    ~FileLock();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
    FileLock(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
    int fd_ = -1;
    std::string path_;
};

}  // namespace penstock
