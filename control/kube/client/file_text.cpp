// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/file_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "control/base/descriptor.hpp"

namespace penstock::kube {
namespace {

std::unexpected<Error> fail_errno(const std::filesystem::path& file) {
    const int cause = errno;
    const Errc code = cause == ENOENT                     ? Errc::NotFound
                      : cause == EACCES || cause == EPERM ? Errc::PermissionDenied
                                                          : Errc::Unavailable;
    return fail(code, file.string() + ": " + std::strerror(cause));
}

}  // namespace

Result<std::string> read_file_text(const std::filesystem::path& file, size_t bytes_max) {
    // O_NONBLOCK: a FIFO in place of a file must not block the source thread.
    const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!descriptor.is_open()) {
        return fail_errno(file);
    }
    std::string text;
    std::array<char, 16384> part;
    while (true) {
        const ssize_t got = ::read(descriptor.get(), part.data(), part.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_errno(file);
        }
        if (got == 0) {
            return text;
        }
        text.append(part.data(), static_cast<size_t>(got));
        if (text.size() > bytes_max) {
            return fail(Errc::InvalidArgument,
                        file.string() + ": larger than " + std::to_string(bytes_max) + " bytes");
        }
    }
}

FileStamp stamp_of(const std::filesystem::path& file) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0) {
        return {};
    }
    return {.device = status.st_dev,
            .inode = status.st_ino,
            .bytes = static_cast<uint64_t>(status.st_size),
            .changed_ns = int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
}

}  // namespace penstock::kube
