// SPDX-License-Identifier: Apache-2.0
#include "control/flow_records/rotated_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace penstock::flow_records {
namespace {

// As mkdir -p; an existing folder stays as it is.
Status make_folders(const std::string& path) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        const std::string folder = path.substr(0, slash);
        if (::mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) {
            return fail(Errc::Unavailable, "cannot create " + folder + ": " + std::strerror(errno));
        }
    }
    return {};
}

}  // namespace

RotatedFile::RotatedFile(std::string path, RotationLimits limits) : path_(std::move(path)), limits_(limits) {}

std::unexpected<Error> RotatedFile::failed(const std::string& step) const {
    return fail(Errc::Unavailable, "cannot " + step + " " + path_ + ": " + std::strerror(errno));
}

Status RotatedFile::open() {
    PENSTOCK_TRY_STATUS(make_folders(path_));
    Descriptor opened(
        ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0640));
    struct stat status{};
    if (!opened.is_open() || ::fstat(opened.get(), &status) != 0) {
        return failed("open");
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(Errc::Unavailable, path_ + " is not a regular file");
    }
    file_ = std::move(opened);
    bytes_ = static_cast<uint64_t>(status.st_size);
    last_write_s_ = status.st_mtim.tv_sec;
    return {};
}

bool RotatedFile::is_in_place() const {
    struct stat own{}, at_path{};
    return file_.is_open() && ::fstat(file_.get(), &own) == 0 && ::lstat(path_.c_str(), &at_path) == 0 &&
           own.st_dev == at_path.st_dev && own.st_ino == at_path.st_ino;
}

Status RotatedFile::rotate() {
    const auto numbered = [this](uint32_t number) { return path_ + "." + std::to_string(number); };
    for (uint32_t number = limits_.kept; number > 1; --number) {
        if (std::rename(numbered(number - 1).c_str(), numbered(number).c_str()) != 0 && errno != ENOENT) {
            return failed("rotate");
        }
    }
    const bool is_kept = limits_.kept > 0;
    if ((is_kept ? std::rename(path_.c_str(), numbered(1).c_str()) : ::unlink(path_.c_str())) != 0 &&
        errno != ENOENT) {
        return failed("rotate");
    }
    return open();
}

Status RotatedFile::append(std::string_view lines, uint32_t interval_s, int64_t now_s) {
    if (!is_in_place()) {
        PENSTOCK_TRY_STATUS(open());
    }
    const bool is_full = bytes_ + lines.size() > limits_.bytes_max;
    const bool is_over = last_write_s_ / interval_s != now_s / interval_s;
    if (bytes_ > 0 && (is_full || is_over)) {
        PENSTOCK_TRY_STATUS(rotate());
    }
    std::string_view rest = lines;
    while (!rest.empty()) {
        const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            const int error = errno;
            // Without the lines that are incomplete, each line of the file remains one object.
            if (rest.size() < lines.size() && ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) {
                reopen();
            }
            errno = error;
            return failed("write");
        }
        rest.remove_prefix(static_cast<size_t>(written));
    }
    bytes_ += lines.size();
    last_write_s_ = now_s;
    return {};
}

}  // namespace penstock::flow_records
