// SPDX-License-Identifier: Apache-2.0
// The tables of a penstockd that outlive it. Each start adds a file of its own to the table folder, adopts
// the connections of the file that the former process left, puts its own file in force, and removes the
// former one. Whenever the process ends, by any signal and at any moment, the folder has one complete file in
// force.
//
//   open()          folder locked, former file found, own file created     before EAL, which gets less memory
//   former()        what WorkerSet::start() adopts                         the last good state is compiled
//   put_in_force()  own file in force, former one removed                  before the first packet
//   write_names()                                                          before each publication
//
// Without a file (`--table-dir off`, no room, a folder of another user) the gateway runs as usual, and
// connections end with the process. status() has the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/gateway/tables/former_names.hpp"
#include "control/gateway/tables/names_writer.hpp"
#include "control/gateway/tables/table_file.hpp"
#include "control/gateway/tables/table_folder.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/eal/hugepage_size.hpp"

namespace penstock::gateway {

// Where the tables are, for status and metrics.
struct TablesStatus {
    std::string file;  // "": connections end with the process
    std::string why;   // if so, the reason
    uint64_t bytes = 0;
    bool in_hugepages = false;
    std::string remark;         // a disadvantage of the place; "": none
    std::string nothing_taken;  // why no connections of a former process were looked at; "": they were
    std::vector<TableFolder::Refused> refused;
    uint64_t name_failures = 0;  // records that could not be written
    std::string name_error;      // the last one
};

struct TableKeeperOptions {
    std::string folder;      // as --table-dir: a path, "auto", or "" (off)
    std::string state_file;  // "": none
    bool no_huge = false;
    drivers::HugepageSize hugepage_size = drivers::HugepageSize::Any;
    unsigned workers = 1;
    uint32_t connections = 0;  // per worker
    uint32_t affinity_entries = 0;
    bool is_successor = false;  // of a process that still has the folder
};

// Folders that "auto" stands for, best first: one for each state file, so that two gateways on a machine do
// not meet. `hugetlbfs`: the folder where it is mounted; "": nowhere.
[[nodiscard]] std::vector<std::string> default_table_folders(const std::string& state_file,
                                                             const std::string& hugetlbfs,
                                                             const std::string& tmpfs = "/dev/shm");

// Memory to reserve for a new file with these sizes on a hugetlbfs, in MB.
[[nodiscard]] uint64_t hugetlbfs_megabytes(const TableFileSizes& sizes, uint64_t page_bytes);

class TableKeeper {
 public:
    // AlreadyExists: another process has the folder. Nothing else prevents the start.
    static Result<std::unique_ptr<TableKeeper>> open(const TableKeeperOptions& options);

    // Of a successor, before former(): the process that had the folder has released it. AlreadyExists: it has
    // not.
    Status take_lock();
    void release_lock();

    // Memory of the tables, 0 without a file.
    [[nodiscard]] uint64_t table_bytes() const noexcept { return file_ ? file_->table_bytes() : 0; }
    // Keys of the former process, which place its connections; empty: there was none.
    [[nodiscard]] std::vector<uint8_t> former_rss_key() const;
    [[nodiscard]] std::optional<HashKey> former_secret() const;

    [[nodiscard]] bool has_file() const noexcept { return file_.has_value(); }
    // Memory for worker::TableMemory, by its names "connections-N" and "affinity". Internal: other sizes than
    // open() was given.
    [[nodiscard]] Result<std::span<std::byte>> memory(const std::string& name, size_t bytes) const;
    // Empty: there is no former process, or no configuration to adopt by. Valid until forget_former().
    [[nodiscard]] std::optional<adopt::FormerTables> former(const Compiled& compiled, const IdMap& ids,
                                                            bool has_configuration);
    // The file of the former process leaves the folder; its memory stays until forget_former().
    void put_in_force(const TableFile::Constants& constants);
    void forget_former();

    // See NamesWriter. Failures are logged and counted.
    void write_names(const Compiled& compiled);
    void write_names(const Compiled& compiled, std::span<const model::ServiceKey> changed);

    // Any thread.
    [[nodiscard]] TablesStatus status() const;

 private:
    TableKeeper() = default;
    Status open_folders(const std::vector<std::string>& paths, bool may_be_absent, TableFolder::Lock lock);
    void find_former();
    Status create_file(const TableFolder& folder, uint64_t generation, const TableFileSizes& sizes);
    void note_failure(const Status& written);

    std::vector<TableFolder> folders_;  // best first
    std::string boot_id_;
    uint64_t generation_ = 0;  // highest so far
    std::optional<FormerTableFile> former_;
    const TableFolder* former_folder_ = nullptr;  // in folders_
    std::optional<TableFile> file_;
    std::optional<NamesWriter> names_;
    uint64_t hugepages_added_ = 0;
    drivers::HugepageSize hugepage_size_ = drivers::HugepageSize::Any;  // of hugepages_added_
    mutable std::mutex mutex_;                                          // of the next one
    TablesStatus status_;
};

}  // namespace penstock::gateway
