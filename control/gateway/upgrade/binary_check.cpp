// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/binary_check.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace penstock::gateway {
namespace {

std::string octal(mode_t mode) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
    return text.data();
}

}  // namespace

Result<Descriptor> open_trusted_binary(const std::string& path) {
    const std::string what = "binary " + path + ": ";
    if (!path.starts_with('/')) {
        return fail(Errc::InvalidArgument, what + "must be an absolute path");
    }
    // A FIFO without a writer would block open().
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) {
        const Errc code = errno == ENOENT || errno == ENOTDIR ? Errc::NotFound : Errc::PermissionDenied;
        return fail(code, what + std::strerror(errno));
    }
    struct stat facts{};
    if (::fstat(file.get(), &facts) != 0) {
        return fail(Errc::Unavailable, what + std::strerror(errno));
    }
    if (!S_ISREG(facts.st_mode) || (facts.st_mode & 0111) == 0) {
        return fail(Errc::PermissionDenied, what + std::strerror(EACCES) + ": it is no executable file");
    }
    if (facts.st_uid != 0 && facts.st_uid != ::geteuid()) {
        return fail(Errc::PermissionDenied, what + "is not trusted: it belongs to user " +
                                                std::to_string(facts.st_uid) +
                                                ", and must belong to root or to penstockd's user");
    }
    if ((facts.st_mode & 0022) != 0) {
        return fail(Errc::PermissionDenied, what + "is not trusted: its group or others can write it (mode " +
                                                octal(facts.st_mode) + "); use chmod go-w");
    }
    return file;
}

}  // namespace penstock::gateway
