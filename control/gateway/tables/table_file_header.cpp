// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/table_file_header.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <utility>

#include "control/gateway/tables/id_names.hpp"
#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/conn/entry.hpp"
#include "dataplane/conn/table_layout.hpp"
#include "dataplane/lb/affinity.hpp"

namespace penstock::gateway {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kServicesBytes = uint64_t{limits::kServicesMax} * sizeof(ServiceRecord);
constexpr uint64_t kEndpointsBytes = uint64_t{limits::kBackendsMax} * sizeof(EndpointRecord);
// Far more than the options permit. Keeps sums of untrusted sizes far from the end of 64 bits.
constexpr uint64_t kSectionBytesMax = uint64_t{1} << 50;

constexpr uint64_t up_to_page(uint64_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

std::unexpected<RefusedTables> refuse_file(TableRefusal reason, std::string why) {
    return std::unexpected(RefusedTables{reason, std::move(why)});
}

template <typename T>
uint64_t checksum_of_words(const T& value, const HashKey& key) noexcept {
    constexpr size_t kWords = offsetof(T, checksum) / sizeof(uint64_t);
    return siphash13(key, load<std::array<uint64_t, kWords>>(reinterpret_cast<const std::byte*>(&value)));
}

// Why the tables of a file with another layout than that of this build cannot be read.
std::optional<RefusedTables> refusal_of_layout(const TableFileDescription& description,
                                               const TableFileHeader& header) {
    const auto other = [](const std::string& why) {
        return RefusedTables{TableRefusal::OtherLayout,
                             "has tables of another layout than this build, " + why};
    };
    if (description.magic != TableFileDescription::kMagic) {
        return other("and does not describe it");
    }
    if (description.format != TableFileDescription::kFormat ||
        description.bytes != sizeof(TableFileDescription)) {
        return other("described in format " + std::to_string(description.format) +
                     ", which this build does not read");
    }
    if (description.checksum != checksum_of(description, header)) {
        return RefusedTables{TableRefusal::Damaged,
                             "has a description of its tables whose checksum is wrong"};
    }
    if (description.records != record_layout()) {
        return other("and its names have another one too");
    }
    if (const std::string obstacle = conn::obstacle_of(description.tables, header.table_bytes);
        !obstacle.empty()) {
        return other("which this build cannot read: " + obstacle);
    }
    return std::nullopt;
}

bool is_same_place(const TableFileHeader& a, const TableFileHeader& b) {
    return a.services_at == b.services_at && a.endpoints_at == b.endpoints_at &&
           a.affinity_at == b.affinity_at && a.tables_at == b.tables_at && a.file_bytes == b.file_bytes;
}

}  // namespace

TableFileHeader laid_out(TableFileHeader header, const TableFileSizes& sizes) {
    header.workers = sizes.workers;
    header.affinity_bytes = sizes.affinity_bytes;
    header.table_bytes = sizes.table_bytes;
    header.services_at = kSectionsAt;
    header.endpoints_at = header.services_at + up_to_page(kServicesBytes);
    header.affinity_at = header.endpoints_at + up_to_page(kEndpointsBytes);
    header.tables_at = header.affinity_at + up_to_page(sizes.affinity_bytes);
    header.file_bytes = header.tables_at + up_to_page(sizes.workers * sizes.table_bytes);
    return header;
}

uint64_t table_layout() noexcept {
    constexpr uint64_t kEndian = std::endian::native == std::endian::little ? 1 : 2;
    constexpr std::array<uint64_t, 12> kFacts{
        kEndian,
        sizeof(void*),
        kCacheLine,
        conn::detail::Header::kVersion,
        sizeof(conn::detail::Header),
        sizeof(conn::detail::Bucket),
        sizeof(conn::Entry),
        sizeof(conn::detail::V6Addresses),
        sizeof(lb::detail::AffinityBucket),
        sizeof(ServiceRecord),
        sizeof(EndpointRecord),
        uint64_t{limits::kServicesMax} << 32 | limits::kBackendsMax,
    };
    return siphash13(HashKey{}, kFacts);
}

std::string current_boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id.substr(0, TableFileHeader{}.boot_id.size() - 1);
}

uint64_t record_layout() noexcept {
    constexpr uint64_t kEndian = std::endian::native == std::endian::little ? 1 : 2;
    constexpr std::array<uint64_t, 5> kFacts{
        kEndian,
        sizeof(void*),
        sizeof(ServiceRecord),
        sizeof(EndpointRecord),
        uint64_t{limits::kServicesMax} << 32 | limits::kBackendsMax,
    };
    return siphash13(HashKey{}, kFacts);
}

uint64_t affinity_layout() noexcept {
    constexpr std::array<uint64_t, 2> kFacts{kCacheLine, sizeof(lb::detail::AffinityBucket)};
    return siphash13(HashKey{}, kFacts);
}

uint64_t checksum_of(const TableFileHeader& header) noexcept {
    return checksum_of_words(header, {TableFileHeader::kMagic, 0});
}

uint64_t checksum_of(const TableFileDescription& description, const TableFileHeader& header) noexcept {
    return checksum_of_words(description, {TableFileDescription::kMagic, header.checksum});
}

TableFileDescription description_for(const conn::TableDescription& tables,
                                     const TableFileHeader& header) noexcept {
    TableFileDescription description;
    description.bytes = sizeof(TableFileDescription);
    description.records = record_layout();
    description.affinity = affinity_layout();
    description.tables = tables;
    description.checksum = checksum_of(description, header);
    return description;
}

const char* to_string(TableRefusal refusal) noexcept {
    switch (refusal) {
        case TableRefusal::NotFinished:
            return "not_finished";
        case TableRefusal::Damaged:
            return "damaged";
        case TableRefusal::OtherFormat:
            return "other_format";
        case TableRefusal::OtherLayout:
            return "other_layout";
        case TableRefusal::OtherBoot:
            return "other_boot";
        case TableRefusal::OtherOwner:
            return "other_owner";
        case TableRefusal::TooSmall:
            return "too_small";
    }
    return "?";
}

std::expected<TableFileHeader, RefusedTables> read_header(std::span<const std::byte> start,
                                                          uint64_t file_bytes, std::string_view boot_id) {
    if (start.size() < kSectionsAt) {
        return refuse_file(TableRefusal::TooSmall, "is shorter than the start of a table file");
    }
    const auto header = load<TableFileHeader>(start.data());
    const uint32_t state = load<TableFileProgress>(start.data() + kProgressAt).state;
    if (state == TableFileProgress::kFilling) {
        return refuse_file(TableRefusal::NotFinished, "was not complete when its process ended");
    }
    if (state != TableFileProgress::kInForce || header.magic != TableFileHeader::kMagic) {
        return refuse_file(TableRefusal::Damaged, "is not a table file");
    }
    if (header.format != TableFileHeader::kFormat) {
        return refuse_file(TableRefusal::OtherFormat, "has format " + std::to_string(header.format) +
                                                          "; this build reads format " +
                                                          std::to_string(TableFileHeader::kFormat));
    }
    if (header.checksum != checksum_of(header)) {
        return refuse_file(TableRefusal::Damaged, "has a header whose checksum is wrong");
    }
    if (header.layout != table_layout()) {
        if (auto refused =
                refusal_of_layout(load<TableFileDescription>(start.data() + kDescriptionAt), header)) {
            return std::unexpected(std::move(*refused));
        }
    }
    const std::string_view booted(header.boot_id.data(),
                                  strnlen(header.boot_id.data(), header.boot_id.size()));
    if (booted.empty() || booted != boot_id) {
        return refuse_file(TableRefusal::OtherBoot, "is of another boot of the machine");
    }
    if (header.workers == 0 || header.workers > limits::kWorkersMax || header.table_bytes % kCacheLine != 0 ||
        header.table_bytes > kSectionBytesMax / limits::kWorkersMax ||
        header.affinity_bytes > kSectionBytesMax || header.rss_key_bytes > kRssKeyBytesMax ||
        !is_same_place(header,
                       laid_out(header, {header.workers, header.table_bytes, header.affinity_bytes}))) {
        return refuse_file(TableRefusal::Damaged, "has a header that contradicts itself");
    }
    if (file_bytes < header.file_bytes) {
        return refuse_file(TableRefusal::TooSmall, "has " + std::to_string(file_bytes) + " of the " +
                                                       std::to_string(header.file_bytes) +
                                                       " bytes that its header names");
    }
    return header;
}

std::optional<TableFileDescription> read_description(std::span<const std::byte> start) noexcept {
    return load<TableFileHeader>(start.data()).layout == table_layout()
               ? std::nullopt
               : std::optional(load<TableFileDescription>(start.data() + kDescriptionAt));
}

TableFileProgress read_progress(std::span<const std::byte> start) noexcept {
    auto progress = load<TableFileProgress>(start.data() + kProgressAt);
    progress.services_used = std::min(progress.services_used, limits::kServicesMax);
    progress.endpoints_used = std::min(progress.endpoints_used, limits::kBackendsMax);
    return progress;
}

}  // namespace penstock::gateway
