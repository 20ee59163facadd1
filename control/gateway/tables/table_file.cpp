// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/table_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dataplane/base/bytes.hpp"

namespace penstock::gateway {
namespace {

// Records are allocated in steps of this size, not one by one: a system call for about a thousand ids.
constexpr uint64_t kRecordStepBytes = 1 << 18;

std::unexpected<Error> tables_failed(const std::string& path, const char* step) {
    const int error = errno;
    const Errc code = error == ENOSPC || error == ENOMEM || error == EDQUOT ? Errc::Exhausted
                      : error == EACCES || error == EPERM || error == EROFS ? Errc::PermissionDenied
                                                                            : Errc::Unavailable;
    return fail(code, path + ": " + step + ": " + std::strerror(error));
}

constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// Reads exactly `bytes` from a position. The holes of a file are read as zeros and stay holes.
bool read_at(int fd, void* to, uint64_t bytes, uint64_t at) {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
        const ssize_t got = pread(fd, out, bytes, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        out += got;
        at += static_cast<uint64_t>(got);
        bytes -= static_cast<uint64_t>(got);
    }
    return true;
}

template <typename Record>
Result<std::vector<Record>> read_records(const std::string& path, int fd, uint64_t at, uint32_t count) {
    std::vector<Record> records(count);
    if (!read_at(fd, records.data(), records.size() * sizeof(Record), at)) {
        return tables_failed(path, "its names cannot be read");
    }
    return records;
}

}  // namespace

Result<FileMapping> FileMapping::map(int fd, size_t bytes, int protection) {
    // Without MAP_NORESERVE, hugetlbfs would promise pages for the holes of the file as well.
    void* memory = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED) {
        return fail(errno == ENOMEM ? Errc::Exhausted : Errc::Unavailable,
                    std::string("cannot be mapped: ") + std::strerror(errno));
    }
    FileMapping mapping;
    mapping.bytes_ = {static_cast<std::byte*>(memory), bytes};
    return mapping;
}

FileMapping::~FileMapping() {
    if (!bytes_.empty()) {
        munmap(bytes_.data(), bytes_.size());
    }
}

Result<TableFile> TableFile::create(const std::string& path, uint64_t page_bytes, uint64_t generation,
                                    const TableFileSizes& sizes) {
    TableFile file;
    file.path_ = path;
    file.header_ = laid_out({}, sizes);
    file.header_.generation = generation;
    file.tables_ = sizes.tables;
    file.fd_ = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.fd_.is_open()) {
        return tables_failed(path, "cannot be created");
    }
    const auto give_up = [&](Error error) {
        unlink(path.c_str());
        return std::unexpected(std::move(error));
    };
    const uint64_t length = round_up(file.header_.file_bytes, page_bytes);
    if (ftruncate(file.fd_.get(), static_cast<off_t>(length)) != 0) {
        return give_up(tables_failed(path, "cannot get its size").error());
    }
    auto memory = FileMapping::map(file.fd_.get(), length, PROT_READ | PROT_WRITE);
    if (!memory) {
        return give_up(in_context(path, memory.error()).error());
    }
    file.memory_ = std::move(*memory);
    // Of use only where the kernel backs tmpfs by large pages on request. The result does not matter.
    madvise(file.memory_.bytes().data() + file.header_.affinity_at / page_bytes * page_bytes,
            file.table_bytes(), MADV_HUGEPAGE);
    for (const auto& [at, bytes] : {std::pair{uint64_t{0}, uint64_t{kSectionsAt}},
                                    std::pair{file.header_.affinity_at, file.table_bytes()}}) {
        if (auto allocated = file.allocate(at, bytes); !allocated) {
            return give_up(std::move(allocated.error()));
        }
    }
    file.store_at(kProgressAt, TableFileProgress{});
    return file;
}

Status TableFile::allocate(uint64_t at, uint64_t bytes) {
    int result = 0;
    do {
        result = fallocate(fd_.get(), 0, static_cast<off_t>(at), static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        return tables_failed(path_,
                             ("cannot get " + std::to_string((bytes + (1 << 20) - 1) >> 20) + " MB").c_str());
    }
    return {};
}

std::span<std::byte> TableFile::affinity() const noexcept {
    return memory_.bytes().subspan(header_.affinity_at, header_.affinity_bytes);
}

std::span<std::byte> TableFile::table(uint32_t worker) const noexcept {
    return memory_.bytes().subspan(header_.tables_at + worker * header_.table_bytes, header_.table_bytes);
}

// Aligned, so a later process never sees half of a value.
template <typename Value>
void TableFile::store_at(size_t at, Value value) {
    store(memory_.bytes().data() + at, value);
}

template <typename Record>
Status TableFile::write_record(uint64_t section, uint32_t id, const Record& record, uint64_t& allocated,
                               size_t used_at) {
    const uint64_t at = uint64_t{id} * sizeof(Record);
    if (at + sizeof(Record) > allocated) {
        const uint64_t step = round_up(at + sizeof(Record) - allocated, kRecordStepBytes);
        PENSTOCK_TRY_STATUS(allocate(section + allocated, step));
        allocated += step;
    }
    store_at(section + at, record);
    auto* used = reinterpret_cast<uint32_t*>(memory_.bytes().data() + kProgressAt + used_at);
    __atomic_store_n(used, std::max(*used, id + 1), __ATOMIC_RELEASE);
    return {};
}

Status TableFile::note(ServiceId id, const NamedService& service) {
    const auto record = record_of(id, service);
    if (!record) {
        return fail(Errc::InvalidArgument,
                    service.key.to_string() + ": its name is too long for a table file");
    }
    return write_record(header_.services_at, id.value, *record, services_allocated_,
                        offsetof(TableFileProgress, services_used));
}

Status TableFile::note(BackendId id, const NamedEndpoint& endpoint) {
    return write_record(header_.endpoints_at, id.value, record_of(id, endpoint), endpoints_allocated_,
                        offsetof(TableFileProgress, endpoints_used));
}

void TableFile::forget(BackendId id) {
    const uint64_t at = uint64_t{id.value} * sizeof(EndpointRecord);
    if (at + sizeof(EndpointRecord) <= endpoints_allocated_) {
        store_at(header_.endpoints_at + at, EndpointRecord{});
    }
}

void TableFile::put_in_force(const Constants& constants, std::string_view boot_id) {
    header_.layout = table_layout();
    header_.tsc_hz = constants.tsc_hz;
    header_.secret = constants.secret;
    header_.snat_ports = constants.snat_ports;
    header_.rss_key_bytes =
        constants.rss_key.size() <= kRssKeyBytesMax ? static_cast<uint32_t>(constants.rss_key.size()) : 0;
    std::copy_n(constants.rss_key.begin(), header_.rss_key_bytes, header_.rss_key.begin());
    std::ranges::copy(boot_id.substr(0, header_.boot_id.size() - 1), header_.boot_id.begin());
    header_.checksum = checksum_of(header_);
    store_at(kDescriptionAt, description_for(tables_, header_));
    store_at(0, header_);
    __atomic_store_n(reinterpret_cast<uint32_t*>(memory_.bytes().data() + kProgressAt +
                                                 offsetof(TableFileProgress, state)),
                     TableFileProgress::kInForce, __ATOMIC_RELEASE);
}

std::expected<FormerTableFile, RefusedTables> FormerTableFile::open(Descriptor fd, const std::string& path,
                                                                    std::string_view boot_id) {
    const auto refuse = [](TableRefusal reason, std::string why) {
        return std::unexpected(RefusedTables{reason, std::move(why)});
    };
    struct stat facts{};
    if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return refuse(TableRefusal::OtherOwner, "is no regular file");
    }
    if (facts.st_uid != geteuid() || (facts.st_mode & 077) != 0 || facts.st_nlink != 1) {
        return refuse(TableRefusal::OtherOwner, "is not this user's alone");
    }
    const auto length = static_cast<uint64_t>(facts.st_size);
    std::vector<std::byte> start(std::min<uint64_t>(length, kSectionsAt));
    if (!read_at(fd.get(), start.data(), start.size(), 0)) {
        return refuse(TableRefusal::Damaged, std::string("cannot be read: ") + std::strerror(errno));
    }
    FormerTableFile file;
    PENSTOCK_TRY(file.header_, read_header(start, length, boot_id));
    file.description_ = read_description(start);
    file.progress_ = read_progress(start);
    // The tables have no holes: reading a hole may need memory that the file system does not have.
    if (static_cast<uint64_t>(facts.st_blocks) * 512 < file.header_.file_bytes - file.header_.affinity_at) {
        return refuse(TableRefusal::TooSmall, "has holes where its tables are");
    }
    auto memory = FileMapping::map(fd.get(), length, PROT_READ);
    if (!memory) {
        return refuse(TableRefusal::Damaged, memory.error().what);
    }
    file.memory_ = std::move(*memory);
    file.fd_ = std::move(fd);
    file.path_ = path;
    return file;
}

std::span<const uint8_t> FormerTableFile::rss_key() const noexcept {
    return std::span(header_.rss_key).first(header_.rss_key_bytes);
}

std::optional<conn::TableDescription> FormerTableFile::layout() const noexcept {
    return description_ ? std::optional(description_->tables) : std::nullopt;
}

bool FormerTableFile::has_known_affinity() const noexcept {
    return !description_ || description_->affinity == affinity_layout();
}

std::span<const std::byte> FormerTableFile::affinity() const noexcept {
    if (!has_known_affinity()) {
        return {};
    }
    return memory_.bytes().subspan(header_.affinity_at, header_.affinity_bytes);
}

std::span<const std::byte> FormerTableFile::table(uint32_t worker) const noexcept {
    return memory_.bytes().subspan(header_.tables_at + worker * header_.table_bytes, header_.table_bytes);
}

Result<std::vector<ServiceRecord>> FormerTableFile::services() const {
    return read_records<ServiceRecord>(path_, fd_.get(), header_.services_at, progress_.services_used);
}

Result<std::vector<EndpointRecord>> FormerTableFile::endpoints() const {
    return read_records<EndpointRecord>(path_, fd_.get(), header_.endpoints_at, progress_.endpoints_used);
}

}  // namespace penstock::gateway
