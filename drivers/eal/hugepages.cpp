// SPDX-License-Identifier: Apache-2.0
#include "drivers/eal/hugepages.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace penstock::drivers {
namespace {

constexpr std::string_view kFolderPrefix = "hugepages-";
// The page size that every x86-64 and most arm64 kernels can still allocate at run time. Larger pages must be
// reserved at boot.
constexpr const char* kGrowableFolder = "/hugepages-2048kB";
constexpr uint64_t kGrowablePageKb = 2048;

std::optional<uint64_t> read_number(const std::string& path) {
    std::ifstream file(path);
    uint64_t value = 0;
    if (!(file >> value)) {
        return std::nullopt;
    }
    return value;
}

bool write_number(const std::string& path, uint64_t value) {
    std::ofstream file(path);
    file << value << '\n';
    file.flush();
    return file.good();
}

// Free pages that are not reserved for another mapping.
uint64_t available_pages(const std::string& folder) {
    const uint64_t free = read_number(folder + "/free_hugepages").value_or(0);
    const uint64_t promised = read_number(folder + "/resv_hugepages").value_or(0);
    return free > promised ? free - promised : 0;
}

uint64_t available_kb(const std::string& pools) {
    uint64_t total = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(pools, ignored)) {
        const std::string folder = entry.path().filename().string();  // hugepages-1048576kB
        uint64_t page_kb = 0;
        if (folder.starts_with(kFolderPrefix)) {
            std::from_chars(folder.data() + kFolderPrefix.size(), folder.data() + folder.size(), page_kb);
            total += page_kb * available_pages(entry.path().string());
        }
    }
    return total;
}

}  // namespace

HugepageTurn::HugepageTurn(const std::string& file) : fd_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    while (fd_ >= 0 && flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
}
HugepageTurn::~HugepageTurn() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

Result<uint64_t> reserve_hugepages(unsigned memory_mb, const std::string& pools) {
    const uint64_t wanted_kb = uint64_t{memory_mb} * 1024;
    if (available_kb(pools) >= wanted_kb) {
        return 0;
    }
    const std::string folder = pools + kGrowableFolder;
    const std::string total_file = folder + "/nr_hugepages";
    const auto total = read_number(total_file);
    if (!total) {
        return fail(Errc::Unsupported, "this kernel offers no 2 MB pages");
    }
    const uint64_t needed = (wanted_kb + kGrowablePageKb - 1) / kGrowablePageKb;
    const uint64_t free = available_pages(folder);
    const uint64_t missing = needed > free ? needed - free : 0;
    const std::string count = std::to_string(free) + " of " + std::to_string(needed) + " pages are free";
    if (!write_number(total_file, *total + missing)) {
        return fail(Errc::PermissionDenied, count + ", and this process may not reserve more");
    }
    // The kernel adds as many pages as it can allocate, and reports success even if these are too few.
    const uint64_t got = read_number(total_file).value_or(*total);
    const uint64_t added = got > *total ? got - *total : 0;
    if (available_pages(folder) < needed) {
        release_hugepages(added, pools);
        return fail(Errc::Exhausted,
                    count + ", and the kernel could allocate only " + std::to_string(added) + " more");
    }
    return added;
}

void release_hugepages(uint64_t pages, const std::string& pools) {
    const std::string total_file = pools + kGrowableFolder + "/nr_hugepages";
    const auto total = read_number(total_file);
    if (pages > 0 && total) {
        write_number(total_file, *total > pages ? *total - pages : 0);
    }
}

}  // namespace penstock::drivers
