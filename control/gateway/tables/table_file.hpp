// SPDX-License-Identifier: Apache-2.0
// A table file in memory: the one that this process fills, and the one that an earlier process has left. The
// start of the file and its sections are described in table_file_header.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/gateway/tables/id_names.hpp"
#include "control/gateway/tables/table_file_header.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// A mapping of a file, unmapped with the object.
class FileMapping {
 public:
    FileMapping() = default;
    // `protection` is that of mmap(2). Exhausted: no address space is left for it. Unavailable: any other
    // failure of the system call.
    static Result<FileMapping> map(int fd, size_t bytes, int protection);
    FileMapping(FileMapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    FileMapping& operator=(FileMapping&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~FileMapping();
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
    std::span<std::byte> bytes_;
};

// The file of this process. Pages are allocated before they are touched: writing to a file system without
// room would otherwise end the process by SIGBUS.
class TableFile {
 public:
    // Creates `path`, which must not exist, in a file system with pages of `page_bytes`. All memory of tables
    // is allocated and zero, that of records when it is needed. Exhausted: the file system has too little
    // room. Unavailable, PermissionDenied: the step that failed. On failure there is no file.
    static Result<TableFile> create(const std::string& path, uint64_t page_bytes, uint64_t generation,
                                    const TableFileSizes& sizes);

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] uint64_t generation() const noexcept { return header_.generation; }
    [[nodiscard]] uint32_t workers() const noexcept { return header_.workers; }
    [[nodiscard]] uint64_t bytes() const noexcept { return header_.file_bytes; }
    // Bytes that the tables take. Records come in addition, as many as there are names.
    [[nodiscard]] uint64_t table_bytes() const noexcept { return header_.file_bytes - header_.affinity_at; }
    [[nodiscard]] std::span<std::byte> affinity() const noexcept;
    [[nodiscard]] std::span<std::byte> table(uint32_t worker) const noexcept;

    // Writes the record of a number before workers get it, or before its meaning changes for them. One thread
    // at a time. Exhausted: no room for it. InvalidArgument: a name is too long. What refers to the number is
    // not kept then.
    Status note(ServiceId id, const NamedService& service);
    Status note(BackendId id, const NamedEndpoint& endpoint);
    // The backend's clients are no longer pinned to it.
    void forget(BackendId id);

    // What the next process needs besides tables and records.
    struct Constants {
        uint64_t tsc_hz = 0;
        HashKey secret;
        std::span<const uint8_t> rss_key;
        nat::PortRange snat_ports;
    };
    // From here on, the next process may use the file.
    void put_in_force(const Constants& constants, std::string_view boot_id);

 private:
    TableFile() = default;
    Status allocate(uint64_t at, uint64_t bytes);
    template <typename Record>
    Status write_record(uint64_t section, uint32_t id, const Record& record, uint64_t& allocated,
                        size_t used_at);
    template <typename Value>
    void store_at(size_t at, Value value);

    std::string path_;
    Descriptor fd_;
    FileMapping memory_;
    TableFileHeader header_;
    conn::TableDescription tables_;
    uint64_t services_allocated_ = 0;  // bytes of the section
    uint64_t endpoints_allocated_ = 0;
};

// The file of an earlier process. Nothing in it is trusted beyond what read_header() has checked.
class FormerTableFile {
 public:
    // `fd` is open for reading. Refused if it is no table file that this process can use.
    static std::expected<FormerTableFile, RefusedTables> open(Descriptor fd, const std::string& path,
                                                              std::string_view boot_id);
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const TableFileHeader& header() const noexcept { return header_; }
    [[nodiscard]] std::span<const uint8_t> rss_key() const noexcept;
    // Set if the tables of connections have another layout than those of this build.
    [[nodiscard]] std::optional<conn::TableDescription> layout() const noexcept;
    // False: the affinity table has another layout, and cannot be read.
    [[nodiscard]] bool has_known_affinity() const noexcept;
    // Read-only memory. The affinity table is empty if its layout is not known.
    [[nodiscard]] std::span<const std::byte> affinity() const noexcept;
    [[nodiscard]] std::span<const std::byte> table(uint32_t worker) const noexcept;
    // Copies of the records, by number. Unavailable: they cannot be read.
    [[nodiscard]] Result<std::vector<ServiceRecord>> services() const;
    [[nodiscard]] Result<std::vector<EndpointRecord>> endpoints() const;

 private:
    FormerTableFile() = default;
    std::string path_;
    Descriptor fd_;
    FileMapping memory_;
    TableFileHeader header_;
    std::optional<TableFileDescription> description_;
    TableFileProgress progress_;
};

}  // namespace penstock::gateway
