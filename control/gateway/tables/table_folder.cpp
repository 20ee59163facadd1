// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/table_folder.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace penstock::gateway {
namespace {

constexpr std::string_view kInUse = "tables.";
constexpr std::string_view kRefused = "refused.";

std::unexpected<Error> folder_failed(const std::string& path, const char* step) {
    const Errc code =
        errno == EACCES || errno == EPERM || errno == EROFS ? Errc::PermissionDenied : Errc::Unavailable;
    return fail(code, path + ": " + step + ": " + std::strerror(errno));
}

// The number behind `prefix`, up to the end or the next dot; empty if `file` is named otherwise.
std::optional<uint64_t> generation_in(std::string_view file, std::string_view prefix) {
    if (!file.starts_with(prefix)) {
        return std::nullopt;
    }
    file.remove_prefix(prefix.size());
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), number);
    const bool is_whole = end == file.data() + file.size() || (prefix == kRefused && *end == '.');
    // Half of the range: numbers never reach the end of it.
    return error == std::errc{} && is_whole && number < uint64_t{1} << 63 ? std::optional(number)
                                                                          : std::nullopt;
}

// Files of the folder by generation, newest first.
std::vector<std::pair<uint64_t, std::string>> files_named(const std::string& folder,
                                                          std::string_view prefix) {
    std::vector<std::pair<uint64_t, std::string>> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        if (const auto generation = generation_in(name, prefix)) {
            found.emplace_back(*generation, name);
        }
    }
    std::ranges::sort(found, std::greater{});
    return found;
}

}  // namespace

Result<TableFolder> TableFolder::open(const std::string& path, Lock lock) {
    std::error_code ignored;  // reported by open() below
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return folder_failed(path, "cannot be created");
    }
    TableFolder folder;
    folder.path_ = path;
    folder.lock_ = Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    struct stat facts{};
    struct statfs system{};
    if (!folder.lock_.is_open() || fstat(folder.lock_.get(), &facts) != 0 ||
        fstatfs(folder.lock_.get(), &system) != 0) {
        return folder_failed(path, "cannot be opened");
    }
    if (facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) {
        return fail(
            Errc::PermissionDenied,
            path + ": is not this user's alone; it must belong to the user of penstockd and have mode 0700");
    }
    folder.is_hugetlbfs_ = system.f_type == HUGETLBFS_MAGIC;
    if (!folder.is_hugetlbfs_ && system.f_type != TMPFS_MAGIC) {
        return fail(Errc::Unsupported, path + ": is not in memory; tables need tmpfs or hugetlbfs");
    }
    folder.page_bytes_ = static_cast<uint64_t>(folder.is_hugetlbfs_ ? system.f_bsize : getpagesize());
    if (lock == Lock::Now) {
        PENSTOCK_TRY_STATUS(folder.lock());
    }
    return folder;
}

Status TableFolder::lock() {
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        return fail(Errc::AlreadyExists, "table folder " + path_ + " is in use by another process");
    }
    return {};
}

void TableFolder::unlock() {
    flock(lock_.get(), LOCK_UN);
}

TableFolder::Found TableFolder::look(std::string_view boot_id) const {
    Found found;
    for (const auto& [generation, name] : files_named(path_, kInUse)) {
        found.generation = std::max(found.generation, generation);
        if (found.newest) {
            remove(name);  // its connections are in the newer one
            continue;
        }
        Descriptor fd(::open(in_folder(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (!fd.is_open()) {
            found.refused.push_back(
                {name, TableRefusal::OtherOwner, std::string("cannot be opened: ") + std::strerror(errno)});
        } else if (auto former = FormerTableFile::open(std::move(fd), in_folder(name), boot_id); !former) {
            found.refused.push_back({name, former.error().reason, former.error().why});
        } else if (former->header().generation != generation) {
            found.refused.push_back({name, TableRefusal::Damaged, "has another generation than its name"});
        } else {
            found.newest = std::move(*former);
        }
    }
    for (Refused& refused : found.refused) {
        refused.is_removed =
            refused.reason == TableRefusal::NotFinished || refused.reason == TableRefusal::OtherBoot;
        if (refused.is_removed) {
            remove(refused.file);  // of no use
        } else {
            set_aside(refused.file, refused.reason);
        }
    }
    for (const auto& [generation, name] : files_named(path_, kRefused)) {
        found.generation = std::max(found.generation, generation);
    }
    return found;
}

Result<TableFile> TableFolder::add(uint64_t generation, const TableFileSizes& sizes) const {
    return TableFile::create(in_folder(std::string(kInUse) + std::to_string(generation)), page_bytes_,
                             generation, sizes);
}

void TableFolder::set_aside(const std::string& file, TableRefusal reason) const {
    set_aside(file, to_string(reason));
}

void TableFolder::set_aside(const std::string& file, const std::string& reason) const {
    const std::string as = std::string(kRefused) + file.substr(kInUse.size()) + "." + reason;
    if (rename(in_folder(file).c_str(), in_folder(as).c_str()) != 0) {
        remove(file);
    }
    const auto aside = files_named(path_, kRefused);
    for (size_t i = kSetAsideMax; i < aside.size(); ++i) {
        remove(aside[i].second);
    }
}

void TableFolder::remove(const std::string& file) const {
    unlink(in_folder(file).c_str());
}

}  // namespace penstock::gateway
