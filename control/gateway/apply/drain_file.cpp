// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/drain_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace penstock::gateway {
namespace {

// The folder's entry for the file, or its absence, must be on disk.
Status sync_folder(const std::filesystem::path& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) {
        ::close(fd);
    }
    return synced ? Status()
                  : fail(Errc::Unavailable, "cannot sync " + folder.string() + ": " + std::strerror(error));
}

}  // namespace

bool DrainFile::is_drained() const {
    struct stat found{};
    return !path_.empty() && (::lstat(path_.c_str(), &found) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

Status DrainFile::set(bool drained) const {
    if (path_.empty()) {
        return fail(Errc::Unsupported, "a drain is saved beside the state file, but --state-file is none");
    }
    const std::filesystem::path path(path_);
    if (drained) {
        std::error_code ignored;
        std::filesystem::create_directories(path.parent_path(), ignored);  // open() reports the error
        const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return fail(Errc::Unavailable, "cannot write " + path_ + ": " + std::strerror(errno));
        }
        ::close(fd);
    } else if (::unlink(path_.c_str()) != 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? Status()
                   : fail(Errc::Unavailable, "cannot remove " + path_ + ": " + std::strerror(errno));
    }
    return sync_folder(path.parent_path());
}

}  // namespace penstock::gateway
