// SPDX-License-Identifier: Apache-2.0
#include "control/base/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace penstock {
namespace {

std::string holder_of(int fd) {
    char text[32] = {};
    const ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    std::string pid(text, length > 0 ? static_cast<size_t>(length) : 0);
    while (!pid.empty() && std::isspace(static_cast<unsigned char>(pid.back())) != 0) {
        pid.pop_back();
    }
    return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path, const std::string& what) {
    std::error_code ignored;  // open() below reports it better
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        const Errc code = errno == EACCES || errno == EROFS ? Errc::PermissionDenied : Errc::Unavailable;
        const char* const hint =
            code == Errc::PermissionDenied ? " (run as root, or make the folder writable for this user)" : "";
        return fail(code, "lock file " + path + ": " + std::strerror(errno) + hint);
    }
    FileLock lock(fd);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return fail(Errc::AlreadyExists, what + " is in use by " + holder_of(fd));
    }
    // The file stays when the lock is released: removing it would let two processes lock two files of one
    // name. A stale pid in it is harmless, because it is read only while the lock is held, and then its
    // holder has written it.
    const std::string pid = std::to_string(getpid()) + "\n";
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
        return fail(Errc::Unavailable, "lock file " + path + ": " + std::strerror(errno));
    }
    return lock;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

FileLock::~FileLock() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

}  // namespace penstock
