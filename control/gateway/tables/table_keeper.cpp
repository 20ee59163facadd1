// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/table_keeper.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "control/log/log.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_description.hpp"
#include "dataplane/lb/affinity.hpp"
#include "drivers/eal/hugepages.hpp"

namespace penstock::gateway {
namespace {

constexpr const char* kDefaultStateFile = "/var/lib/penstock/last-good.pb";
constexpr const char* kDefaultHugetlbfs = "/dev/hugepages";
constexpr std::string_view kConnections = "connections-";

using drivers::HugepageSize;

// FNV-1a: the same in every build, so that the folder stays the same.
uint32_t hash_of_path(std::string_view path) {
    uint32_t hash = 2'166'136'261U;
    for (const char c : path) {
        hash = (hash ^ static_cast<uint8_t>(c)) * 16'777'619U;
    }
    return hash;
}

uint64_t megabytes(uint64_t bytes) {
    return (bytes + (1 << 20) - 1) >> 20;
}

}  // namespace

std::vector<std::string> default_table_folders(const std::string& state_file, const std::string& hugetlbfs,
                                               const std::string& tmpfs) {
    std::string name = "penstock";
    if (state_file != kDefaultStateFile) {
        std::array<char, 8> digits{};
        const auto end =
            std::to_chars(digits.data(), digits.data() + digits.size(), hash_of_path(state_file), 16);
        name += "-" + std::string(digits.data(), end.ptr);
    }
    std::vector<std::string> folders;
    if (!hugetlbfs.empty()) {
        folders.push_back(hugetlbfs + "/" + name);
    }
    folders.push_back(tmpfs + "/" + name);
    return folders;
}

// In addition to the tables, the records take pages as they are written. The whole file may fit into one page
// of 1 GB.
uint64_t hugetlbfs_megabytes(const TableFileSizes& sizes, uint64_t page_bytes) {
    const TableFileHeader header = laid_out({}, sizes);
    const uint64_t with_records = header.file_bytes - header.affinity_at + 4 * page_bytes;
    return megabytes(std::min(with_records, (header.file_bytes + page_bytes - 1) / page_bytes * page_bytes));
}

Result<std::unique_ptr<TableKeeper>> TableKeeper::open(const TableKeeperOptions& options) {
    std::unique_ptr<TableKeeper> keeper(new TableKeeper);
    TablesStatus& status = keeper->status_;
    if (options.folder.empty()) {
        status.why = "--table-dir off";
        return keeper;
    }
    if (options.state_file.empty()) {
        status.why = "--state-file none: without a last good configuration no connection can be taken over";
        return keeper;
    }
    const bool is_chosen = options.folder != "auto";
    std::vector<std::string> folders{options.folder};
    std::vector<std::string> former;  // folders of starts with another --hugepage-size, only to be read
    std::string absent;
    if (!is_chosen) {
        const bool is_any = options.hugepage_size == HugepageSize::Any;
        const HugepageSize size = is_any ? HugepageSize::Small2M : options.hugepage_size;
        const std::string hugetlbfs = options.no_huge ? ""
                                      : is_any        ? drivers::hugetlbfs_of(size, kDefaultHugetlbfs, "")
                                                      : drivers::hugetlbfs_of(size, kDefaultHugetlbfs);
        folders = default_table_folders(options.state_file, hugetlbfs);
        for (const HugepageSize other : {HugepageSize::Small2M, HugepageSize::Large1G}) {
            const std::string mount = drivers::hugetlbfs_of(other, kDefaultHugetlbfs);
            const std::string folder = default_table_folders(options.state_file, mount).front();
            std::error_code error;
            if (!mount.empty() && std::ranges::find(folders, folder) == folders.end() &&
                std::filesystem::is_directory(folder, error)) {
                former.push_back(folder);
            }
        }
        if (hugetlbfs.empty() && !is_any) {
            absent = std::string("no hugetlbfs with pages of ") + drivers::text_of_page(size) +
                     " is mounted: mount -t hugetlbfs -o pagesize=" + drivers::word_of_page(size) +
                     " none FOLDER";
        }
    }
    folders.insert(folders.end(), former.begin(), former.end());
    PENSTOCK_TRY_STATUS(keeper->open_folders(
        folders, !is_chosen, options.is_successor ? TableFolder::Lock::Later : TableFolder::Lock::Now));
    if (status.remark.empty()) {
        status.remark = std::move(absent);
    }
    if (keeper->folders_.empty()) {
        return keeper;
    }
    keeper->boot_id_ = current_boot_id();
    keeper->find_former();
    // An even number, as WorkerSet::start() makes it.
    const uint32_t connections = options.connections + options.connections % 2;
    const TableFileSizes sizes{.workers = options.workers,
                               .table_bytes = conn::Table::memory_needed(connections),
                               .affinity_bytes = lb::AffinityTable::memory_needed(options.affinity_entries),
                               .tables = conn::describe_tables(connections)};
    for (const TableFolder& folder : keeper->folders_) {
        if (std::ranges::find(former, folder.path()) != former.end()) {
            continue;
        }
        if (auto created = keeper->create_file(folder, keeper->generation_ + 1, sizes); !created) {
            status.remark = created.error().what;
            continue;
        }
        break;
    }
    if (!keeper->file_) {
        status.why = std::exchange(status.remark, {});
        log::get("control").warn("connections will not survive a restart: {}", status.why);
        return keeper;
    }
    if (!status.remark.empty()) {
        log::get("control").warn("tables are in {}: {}", keeper->file_->path(), status.remark);
    }
    return keeper;
}

// Of several folders, those that cannot be used are passed over.
Status TableKeeper::open_folders(const std::vector<std::string>& paths, bool may_be_absent,
                                 TableFolder::Lock lock) {
    for (const std::string& path : paths) {
        auto folder = TableFolder::open(path, lock);
        if (folder) {
            folders_.push_back(std::move(*folder));
        } else if (folder.error().code == Errc::AlreadyExists) {
            return in_context("--table-dir", std::move(folder.error()));
        } else {
            (folders_.empty() ? status_.why : status_.remark) = folder.error().what;
            log::get("control").warn("connections will not survive a restart in this folder: {}",
                                     folder.error().what);
        }
    }
    if (!folders_.empty() && may_be_absent) {
        status_.remark = std::exchange(status_.why, {});
    }
    return {};
}

Status TableKeeper::take_lock() {
    for (TableFolder& folder : folders_) {
        if (auto locked = folder.lock(); !locked) {
            return in_context("--table-dir", std::move(locked.error()));
        }
    }
    if (former_) {
        // The former process may have written names since this file was found.
        const std::string path = former_->path();
        Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        auto again = FormerTableFile::open(std::move(fd), path, boot_id_);
        if (!again) {
            return fail(Errc::Unavailable, "--table-dir: " + path + ": " + again.error().why);
        }
        former_ = std::move(*again);
    }
    return {};
}

void TableKeeper::release_lock() {
    for (TableFolder& folder : folders_) {
        folder.unlock();
    }
}

void TableKeeper::find_former() {
    for (const TableFolder& folder : folders_) {
        TableFolder::Found found = folder.look(boot_id_);
        generation_ = std::max(generation_, found.generation);
        for (const TableFolder::Refused& refused : found.refused) {
            log::get("control").warn("{}/{} {}; it is not used, and {}", folder.path(), refused.file,
                                     refused.why, refused.is_removed ? "is removed" : "is set aside");
            status_.refused.push_back(refused);
        }
        if (found.newest && (!former_ || found.newest->header().generation > former_->header().generation)) {
            former_ = std::move(found.newest);
            former_folder_ = &folder;
        }
    }
    if (!former_) {
        status_.nothing_taken = status_.refused.empty() ? "there is no table file of a former process"
                                                        : "no table file of a former process can be used";
    }
}

Status TableKeeper::create_file(const TableFolder& folder, uint64_t generation, const TableFileSizes& sizes) {
    if (!folder.is_hugetlbfs()) {
        PENSTOCK_TRY(file_, folder.add(generation, sizes));
        status_.in_hugepages = false;
    } else {
        // The pool is not used by another start between the count of free pages and their allocation.
        const drivers::HugepageTurn turn;
        hugepage_size_ = folder.page_bytes() == drivers::page_kb(HugepageSize::Large1G) * 1024
                             ? HugepageSize::Large1G
                             : HugepageSize::Small2M;
        PENSTOCK_TRY_IN(
            folder.path(), hugepages_added_,
            drivers::reserve_hugepages(hugetlbfs_megabytes(sizes, folder.page_bytes()), hugepage_size_));
        if (auto file = folder.add(generation, sizes); file) {
            file_ = std::move(*file);
        } else {
            drivers::release_hugepages(std::exchange(hugepages_added_, 0), hugepage_size_);
            return std::unexpected(std::move(file.error()));
        }
        status_.in_hugepages = true;
    }
    names_.emplace(*file_);
    status_.file = file_->path();
    status_.bytes = file_->table_bytes();
    return {};
}

std::vector<uint8_t> TableKeeper::former_rss_key() const {
    return former_ ? std::vector<uint8_t>(former_->rss_key().begin(), former_->rss_key().end())
                   : std::vector<uint8_t>();
}

std::optional<HashKey> TableKeeper::former_secret() const {
    return former_ ? std::optional(former_->header().secret) : std::nullopt;
}

Result<std::span<std::byte>> TableKeeper::memory(const std::string& name, size_t bytes) const {
    std::span<std::byte> memory;
    if (name == "affinity") {
        memory = file_->affinity();
    } else if (name.starts_with(kConnections)) {
        uint32_t worker = ~0U;
        std::from_chars(name.data() + kConnections.size(), name.data() + name.size(), worker);
        if (worker < file_->workers()) {
            memory = file_->table(worker);
        }
    }
    if (memory.size() < bytes) {
        return fail(Errc::Internal, file_->path() + ": has " + std::to_string(memory.size()) + " bytes for " +
                                        name + ", which needs " + std::to_string(bytes));
    }
    return memory.first(bytes);
}

std::optional<adopt::FormerTables> TableKeeper::former(const Compiled& compiled, const IdMap& ids,
                                                       bool has_configuration) {
    if (!former_ || !file_) {
        return std::nullopt;
    }
    const auto services = former_->services();
    const auto endpoints = former_->endpoints();
    const std::lock_guard lock(mutex_);
    if (!has_configuration) {
        status_.nothing_taken = "there is no last good configuration";
    } else if (!services || !endpoints) {
        status_.nothing_taken = (services ? endpoints.error() : services.error()).what;
    }
    if (!status_.nothing_taken.empty()) {
        log::get("control").warn("no connection of {} is taken over: {}", former_->path(),
                                 status_.nothing_taken);
        return std::nullopt;
    }
    adopt::FormerTables tables = translate_names(*services, *endpoints, compiled, ids);
    for (uint32_t worker = 0; worker < former_->header().workers; ++worker) {
        tables.connections.push_back(former_->table(worker));
    }
    tables.layout = former_->layout();
    if (tables.layout) {
        log::get("control").info("{} has tables of layout {}; its connections are converted", former_->path(),
                                 tables.layout->version);
    }
    tables.affinity = former_->affinity();
    if (!former_->has_known_affinity()) {
        log::get("control").warn(
            "{} has an affinity table of another layout: clients with session affinity may "
            "get another endpoint",
            former_->path());
    }
    return tables;
}

void TableKeeper::put_in_force(const TableFile::Constants& constants) {
    if (!file_) {
        return;
    }
    file_->put_in_force(constants, boot_id_);
    if (!former_) {
        return;
    }
    const std::string name = std::filesystem::path(former_->path()).filename();
    {
        const std::lock_guard lock(mutex_);
        if (status_.nothing_taken.empty()) {
            former_folder_->remove(name);
        } else {
            former_folder_->set_aside(name, "no_configuration");
        }
    }
    if (former_folder_->is_hugetlbfs() && hugepages_added_ > 0) {
        // Its pages are free now, so the pool does not grow with each restart.
        const drivers::HugepageTurn turn;
        drivers::release_hugepages(std::exchange(hugepages_added_, 0), hugepage_size_);
    }
}

void TableKeeper::forget_former() {
    former_.reset();
}

void TableKeeper::write_names(const Compiled& compiled) {
    if (names_) {
        note_failure(names_->write(compiled));
    }
}

void TableKeeper::write_names(const Compiled& compiled, std::span<const model::ServiceKey> changed) {
    if (names_) {
        note_failure(names_->write(compiled, changed));
    }
}

void TableKeeper::note_failure(const Status& written) {
    if (written) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (status_.name_failures++ == 0) {
        log::get("control").warn("{}: connections of some Services will not survive a restart",
                                 written.error().what);
    }
    status_.name_error = written.error().what;
}

TablesStatus TableKeeper::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

}  // namespace penstock::gateway
