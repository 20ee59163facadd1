// SPDX-License-Identifier: Apache-2.0
#include "control/base/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace penstock {
namespace {

// A descriptor that closes itself. Errors of close() are checked only where they matter.
class File {
 public:
    explicit File(int fd) noexcept : fd_(fd) {}
    ~File() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] int fd() const noexcept { return fd_; }
    int close() noexcept { return ::close(std::exchange(fd_, -1)); }

 private:
    int fd_;
};

std::unexpected<Error> unavailable(const std::string& path, const char* step) {
    return fail(Errc::Unavailable, path + ": " + step + ": " + std::strerror(errno));
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view bytes) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        return fail(Errc::Unavailable, folder.string() + ": cannot be created: " + error.message());
    }
    const std::string beside = path + ".new";
    ::unlink(beside.c_str());  // left by a crash, possibly with another mode
    File file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.fd() < 0) {
        return unavailable(beside, "cannot be created");
    }
    const bool written = ::fchmod(file.fd(), 0600) == 0 && write_all(file.fd(), bytes) &&
                         ::fsync(file.fd()) == 0 && file.close() == 0 &&
                         ::rename(beside.c_str(), path.c_str()) == 0;
    if (!written) {
        auto failure = unavailable(beside, "cannot be written");
        ::unlink(beside.c_str());
        return failure;
    }
    // The rename is durable only when the folder is synced.
    const File parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.fd() < 0 || ::fsync(parent.fd()) != 0) {
        return unavailable(folder.string(), "cannot be synced");
    }
    return {};
}

Result<std::optional<std::string>> read_whole_file(const std::string& path, size_t bytes_max) {
    // Not blocking, because open() of a FIFO waits for its writer.
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.fd() < 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        return unavailable(path, "cannot be read");
    }
    struct stat facts{};
    if (::fstat(file.fd(), &facts) != 0) {
        return unavailable(path, "cannot be read");
    }
    if (!S_ISREG(facts.st_mode)) {
        return fail(Errc::Corrupt, path + ": not a regular file");
    }
    if (static_cast<size_t>(facts.st_size) > bytes_max) {
        return fail(Errc::Corrupt, path + ": longer than " + std::to_string(bytes_max) + " bytes");
    }
    std::string bytes(static_cast<size_t>(facts.st_size), '\0');
    size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t got = ::read(file.fd(), bytes.data() + have, bytes.size() - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return unavailable(path, "cannot be read");
        }
        if (got == 0) {
            break;  // truncated since fstat()
        }
        have += static_cast<size_t>(got);
    }
    bytes.resize(have);
    return bytes;
}

}  // namespace penstock
