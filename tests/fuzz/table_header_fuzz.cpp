// SPDX-License-Identifier: Apache-2.0
// Any bytes as the start of a table file, and as records of names. A header is refused, or its sections lie
// in this order inside the file, do not overlap, and have room for all records and for the tables of all
// workers. A layout of tables other than this build's is refused, or every field of it lies in a unit and
// every unit in a table. A record is refused, or is exactly what this program writes for the name in it.
//
// Input: 1 byte of switches | 2 bytes of the file's length in units of 1 MiB | header | progress
//        | description, if kDescribed | records
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "control/gateway/tables/id_names.hpp"
#include "control/gateway/tables/table_file_header.hpp"
#include "dataplane/base/bytes.hpp"
#include "dataplane/base/check.hpp"

namespace {

using namespace penstock;
using namespace penstock::gateway;

constexpr std::string_view kBoot = "0a1b2c3d-0000-1111-2222-333344445555";
constexpr uint8_t kSealed = 1, kThisBuild = 2, kLaidOut = 4, kShort = 8, kDescribed = 16;

// The next bytes of the input; zeros behind its end.
template <typename T>
T take(std::string_view& input) {
    std::array<char, sizeof(T)> bytes{};
    const size_t taken = std::min(input.size(), bytes.size());
    std::memcpy(bytes.data(), input.data(), taken);
    input.remove_prefix(taken);
    return load<T>(bytes.data());
}

void check_description(const TableFileDescription& read, uint64_t table_bytes) {
    const conn::TableDescription& layout = read.tables;
    PENSTOCK_CHECK(layout.units >= 2 && layout.units % 2 == 0);
    PENSTOCK_CHECK(layout.units_at < table_bytes &&
                   (table_bytes - layout.units_at) / layout.unit_bytes >= layout.units);
    PENSTOCK_CHECK(layout.high_water_at + sizeof(uint32_t) <= layout.units_at);
    for (const uint16_t at : layout.addresses_at) {
        PENSTOCK_CHECK(at + 16 <= layout.unit_bytes);
    }
    // Exactly as long as a unit, so that the address sanitizer sees an access beyond it.
    const std::vector<std::byte> unit(layout.unit_bytes, std::byte{0xff});
    const conn::FieldReader fields(layout);
    for (size_t i = 0; i < conn::kEntryFields; ++i) {
        const uint16_t bits = layout.fields[i].bits;
        PENSTOCK_CHECK(bits <= conn::kFieldBits[i]);
        PENSTOCK_CHECK(fields.read(unit.data(), static_cast<conn::EntryField>(i)) ==
                       (bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits)));
    }
}

void check_header(std::string_view& input) {
    const auto switches = take<uint8_t>(input);
    const uint64_t file_bytes = uint64_t{take<uint16_t>(input)} << 20;
    auto header = take<TableFileHeader>(input);
    const auto progress = take<TableFileProgress>(input);
    auto description =
        (switches & kDescribed) != 0 ? take<TableFileDescription>(input) : TableFileDescription{};
    if ((switches & kThisBuild) != 0) {
        header.magic = TableFileHeader::kMagic;
        header.format = TableFileHeader::kFormat;
        header.layout = table_layout() ^ ((switches & kDescribed) != 0 ? 1 : 0);
        std::ranges::copy(kBoot, header.boot_id.begin());
    }
    if ((switches & kLaidOut) != 0) {
        header = laid_out(header, {header.workers % 128, header.table_bytes, header.affinity_bytes});
    }
    if ((switches & kSealed) != 0) {
        header.checksum = checksum_of(header);
        if ((switches & kThisBuild) != 0) {
            description = description_for(description.tables, header);
        }
        description.checksum = checksum_of(description, header);
    }
    std::array<std::byte, kSectionsAt> start{};
    store(start.data(), header);
    store(start.data() + kProgressAt, progress);
    store(start.data() + kDescriptionAt, description);
    const auto read =
        read_header(std::span(start).first((switches & kShort) != 0 ? 700 : start.size()), file_bytes, kBoot);
    if (!read) {
        PENSTOCK_CHECK(!read.error().why.empty() && std::string_view(to_string(read.error().reason)) != "?");
        return;
    }
    PENSTOCK_CHECK(read->workers >= 1 && read->workers <= limits::kWorkersMax);
    PENSTOCK_CHECK(read->rss_key_bytes <= read->rss_key.size());
    PENSTOCK_CHECK(read->services_at >= kSectionsAt);
    PENSTOCK_CHECK(read->endpoints_at - read->services_at >= limits::kServicesMax * sizeof(ServiceRecord));
    PENSTOCK_CHECK(read->affinity_at - read->endpoints_at >= limits::kBackendsMax * sizeof(EndpointRecord));
    PENSTOCK_CHECK(read->tables_at >= read->affinity_at &&
                   read->tables_at - read->affinity_at >= read->affinity_bytes);
    PENSTOCK_CHECK(read->file_bytes >= read->tables_at && read->file_bytes <= file_bytes);
    PENSTOCK_CHECK((read->file_bytes - read->tables_at) / read->workers >= read->table_bytes);
    PENSTOCK_CHECK(read->tables_at % 64 == 0 && read->table_bytes % 64 == 0);
    if (const auto described = read_description(start)) {
        PENSTOCK_CHECK(read->layout != table_layout());
        check_description(*described, read->table_bytes);
    }
    const TableFileProgress cut = read_progress(start);
    PENSTOCK_CHECK(cut.services_used <= limits::kServicesMax && cut.endpoints_used <= limits::kBackendsMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view input(reinterpret_cast<const char*>(data), size);
    check_header(input);
    while (!input.empty()) {
        const auto at = take<uint8_t>(input);
        const auto service = take<ServiceRecord>(input);
        if (const auto named = read_record(ServiceId{at}, service)) {
            const auto again = record_of(ServiceId{at}, *named);
            PENSTOCK_CHECK(again && read_record(ServiceId{at}, *again) == named);
        }
        const auto endpoint = take<EndpointRecord>(input);
        if (const auto named = read_record(BackendId{at}, endpoint)) {
            PENSTOCK_CHECK(read_record(BackendId{at}, record_of(BackendId{at}, *named)) == named);
        }
    }
    return 0;
}
