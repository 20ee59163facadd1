// SPDX-License-Identifier: Apache-2.0
// A folder with table files: one process at a time owns it and adds a file of the next generation. Files that
// cannot be used are set aside or removed, each with its reason.
//
//   tables.7               in force, or being filled
//   refused.6.other_layout set aside; the newest few are kept
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/gateway/tables/table_file.hpp"
#include "control/gateway/tables/table_file_header.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

class TableFolder {
 public:
    static constexpr size_t kSetAsideMax = 2;

    // Creates the folder if it is missing (mode 0700) and locks it for as long as the object exists.
    // AlreadyExists: a living process has it. PermissionDenied: another user's, open to others, or on a file
    // system that is read-only. Unsupported: not in memory (tmpfs, hugetlbfs): the packet path would wait for
    // a disk. Unavailable: the step that failed.
    // Lock::Later: a living process may have it; lock() follows before anything is put in force or removed.
    enum class Lock { Now, Later };
    static Result<TableFolder> open(const std::string& path, Lock lock = Lock::Now);
    Status lock();  // AlreadyExists: a living process has it
    void unlock();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] uint64_t page_bytes() const noexcept { return page_bytes_; }
    [[nodiscard]] bool is_hugetlbfs() const noexcept { return is_hugetlbfs_; }

    struct Refused {
        std::string file;  // name in the folder before it was set aside
        TableRefusal reason;
        std::string why;
        bool is_removed = false;  // not set aside
    };
    struct Found {
        std::optional<FormerTableFile> newest;  // usable
        std::vector<Refused> refused;
        uint64_t generation = 0;  // highest in the folder, refused files included
    };
    // Looks at all files. Removes files in force that are older than the newest one.
    [[nodiscard]] Found look(std::string_view boot_id) const;
    // A file of this generation that does not exist yet.
    [[nodiscard]] Result<TableFile> add(uint64_t generation, const TableFileSizes& sizes) const;
    // Also removes the oldest files that were set aside.
    void set_aside(const std::string& file, TableRefusal reason) const;
    void set_aside(const std::string& file, const std::string& reason) const;
    void remove(const std::string& file) const;

 private:
    TableFolder() = default;
    [[nodiscard]] std::string in_folder(const std::string& file) const { return path_ + "/" + file; }
    std::string path_;
    Descriptor lock_;
    uint64_t page_bytes_ = 0;
    bool is_hugetlbfs_ = false;
};

}  // namespace penstock::gateway
