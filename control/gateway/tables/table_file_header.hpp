// SPDX-License-Identifier: Apache-2.0
// The start of a table file: what the file holds and where, and for which machine and build it is valid. A
// table file has the connection tables and the affinity table of one penstockd, so that the next one
// continues the connections (table_keeper.hpp). Its records say which Service or endpoint a number meant
// (id_names.hpp).
//
//   header | progress | records of Services | records of endpoints | affinity table | table of each worker
//
// A file is untrusted input for the process that reads it: read_header() checks everything that later code
// relies on, bounds of sections included. The contents of sections are checked by those who read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "dataplane/base/hash.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/conn/table_description.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::gateway {

// Largest RSS key of a NIC that DPDK knows (the i40e family: 52 bytes).
inline constexpr size_t kRssKeyBytesMax = 52;

struct TableFileHeader {
    static constexpr uint64_t kMagic = 0x6c62'746b'7473'6e70;  // "pnstktbl"
    static constexpr uint32_t kFormat = 1;

    uint64_t magic = kMagic;
    uint32_t format = kFormat;
    uint32_t workers = 0;
    uint64_t layout = 0;             // table_layout()
    uint64_t generation = 0;         // each file of a folder has a higher one than its predecessor
    std::array<char, 40> boot_id{};  // of the kernel: times in the tables are TSC readings; zero-filled
    uint64_t tsc_hz = 0;
    HashKey secret;              // WorkerSetOptions::secret
    uint32_t rss_key_bytes = 0;  // 0: no port took one
    nat::PortRange snat_ports;
    std::array<uint8_t, 56> rss_key{};
    // Sections, in bytes from the start of the file.
    uint64_t services_at = 0;
    uint64_t endpoints_at = 0;
    uint64_t affinity_at = 0;
    uint64_t affinity_bytes = 0;
    uint64_t tables_at = 0;
    uint64_t table_bytes = 0;  // of one worker; worker w's begins at tables_at + w * table_bytes
    uint64_t file_bytes = 0;
    uint64_t checksum = 0;  // of all of the above
};
static_assert(std::is_trivially_copyable_v<TableFileHeader> && sizeof(TableFileHeader) % 8 == 0 &&
              sizeof(TableFileHeader) == 224);

// Written while the file is in use; behind the header, on a cache line of its own.
struct TableFileProgress {
    static constexpr uint32_t kFilling = 1;
    static constexpr uint32_t kInForce = 2;
    uint32_t state = kFilling;
    uint32_t services_used = 0;  // records that have ever been written: 0 to this number - 1
    uint32_t endpoints_used = 0;
};
inline constexpr size_t kProgressAt = 512;

// How to read the sections if the header's layout is not that of the reader's build. A file of an older build
// has zeros in its place.
struct TableFileDescription {
    static constexpr uint64_t kMagic = 0x6373'646b'7473'6e70;  // "pnstkdsc"
    static constexpr uint32_t kFormat = 1;

    uint64_t magic = kMagic;
    uint32_t format = kFormat;
    uint32_t bytes = 0;     // of this struct
    uint64_t records = 0;   // record_layout()
    uint64_t affinity = 0;  // affinity_layout()
    conn::TableDescription tables;
    uint64_t checksum = 0;  // of all of the above and of the header's checksum
};
static_assert(std::is_trivially_copyable_v<TableFileDescription> && sizeof(TableFileDescription) == 144);
inline constexpr size_t kDescriptionAt = 1024;
// Sections begin on pages.
inline constexpr size_t kSectionsAt = 4096;

// Where the sections of a file are. Depends on nothing but its arguments.
struct TableFileSizes {
    uint32_t workers = 0;
    uint64_t table_bytes = 0;            // of one worker
    uint64_t affinity_bytes = 0;         // 0: none
    conn::TableDescription tables = {};  // for a reader with another layout; no part of the place of sections
};
// `header` with all section fields set.
[[nodiscard]] TableFileHeader laid_out(TableFileHeader header, const TableFileSizes& sizes);

// A number that differs if this build lays tables or records out in another way, or on a machine of another
// word size or byte order.
[[nodiscard]] uint64_t table_layout() noexcept;
// The same for the records of names and their sections, and for the affinity table.
[[nodiscard]] uint64_t record_layout() noexcept;
[[nodiscard]] uint64_t affinity_layout() noexcept;
// The kernel's boot id; empty if it cannot be read.
[[nodiscard]] std::string current_boot_id();

[[nodiscard]] uint64_t checksum_of(const TableFileHeader& header) noexcept;
[[nodiscard]] uint64_t checksum_of(const TableFileDescription& description,
                                   const TableFileHeader& header) noexcept;
// Complete, for a file with this header, whose checksum is set.
[[nodiscard]] TableFileDescription description_for(const conn::TableDescription& tables,
                                                   const TableFileHeader& header) noexcept;

// Reasons not to use a file. Stable: they are names of metrics and of files that are set aside.
enum class TableRefusal : uint8_t {
    NotFinished,  // its process ended before the file was complete
    Damaged,      // not a table file, or its checksum or its sections are wrong
    OtherFormat,  // a table file of another version of this format
    OtherLayout,  // the tables have a layout that this build cannot read
    OtherBoot,    // the machine has booted since
    OtherOwner,   // of another user, open to other users, or no regular file
    TooSmall,     // shorter than its header says
};
[[nodiscard]] const char* to_string(TableRefusal refusal) noexcept;

struct RefusedTables {
    TableRefusal reason;
    std::string why;  // one sentence without the file's name
};

// `start`: the first kSectionsAt bytes of a file, or less if it is shorter. `file_bytes`: the length of the
// file. The result's sections lie inside the file, do not overlap, and have room for all records.
[[nodiscard]] std::expected<TableFileHeader, RefusedTables> read_header(std::span<const std::byte> start,
                                                                        uint64_t file_bytes,
                                                                        std::string_view boot_id);
// Of a file that read_header() has accepted. Empty: its layout is that of this build. Otherwise it has no
// conn::obstacle_of().
[[nodiscard]] std::optional<TableFileDescription> read_description(std::span<const std::byte> start) noexcept;
// Of a file that read_header() has accepted. Counts are at most the numbers of records.
[[nodiscard]] TableFileProgress read_progress(std::span<const std::byte> start) noexcept;

}  // namespace penstock::gateway
