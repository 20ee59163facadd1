// SPDX-License-Identifier: Apache-2.0
#include "drivers/eal/hugepages.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace penstock::drivers {
namespace {

constexpr std::string_view kFolderPrefix = "hugepages-";

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
uint64_t free_pages_in(const std::string& folder) {
    const uint64_t free = read_number(folder + "/free_hugepages").value_or(0);
    const uint64_t promised = read_number(folder + "/resv_hugepages").value_or(0);
    return free > promised ? free - promised : 0;
}

uint64_t available_kb(const std::string& pools) {
    uint64_t total = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(pools, ignored)) {
        const std::string folder = entry.path().filename().string();  // hugepages-1048576kB
        uint64_t kb = 0;
        if (folder.starts_with(kFolderPrefix)) {
            std::from_chars(folder.data() + kFolderPrefix.size(), folder.data() + folder.size(), kb);
            total += kb * free_pages_in(entry.path().string());
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

uint64_t available_pages(HugepageSize size, const std::string& pools) {
    return free_pages_in(pools + "/" + pool_name(size));
}

Result<uint64_t> reserve_hugepages(uint64_t memory_mb, HugepageSize size, const std::string& pools) {
    const uint64_t wanted_kb = memory_mb * 1024;
    if (size == HugepageSize::Any && available_kb(pools) >= wanted_kb) {
        return 0;
    }
    const std::string folder = pools + "/" + pool_name(size);
    const std::string total_file = folder + "/nr_hugepages";
    const auto total = read_number(total_file);
    if (!total) {
        return fail(Errc::Unsupported, std::string("this kernel offers no ") + text_of_page(size) + " pages");
    }
    const uint64_t needed = (wanted_kb + page_kb(size) - 1) / page_kb(size);
    const uint64_t free = free_pages_in(folder);
    if (free >= needed) {
        return 0;
    }
    const uint64_t missing = needed - free;
    const std::string count = std::to_string(free) + " of " + std::to_string(needed) +
                              (size == HugepageSize::Any ? "" : std::string(" ") + text_of_page(size)) +
                              " pages are free";
    if (!write_number(total_file, *total + missing)) {
        return fail(Errc::PermissionDenied, count + ", and this process may not reserve more");
    }
    // The kernel adds as many pages as it can allocate, and reports success even if these are too few.
    const uint64_t got = read_number(total_file).value_or(*total);
    const uint64_t added = got > *total ? got - *total : 0;
    if (free_pages_in(folder) < needed) {
        release_hugepages(added, size, pools);
        return fail(Errc::Exhausted,
                    count + ", and the kernel could allocate only " + std::to_string(added) + " more");
    }
    return added;
}

void release_hugepages(uint64_t pages, HugepageSize size, const std::string& pools) {
    const std::string total_file = pools + "/" + pool_name(size) + "/nr_hugepages";
    const auto total = read_number(total_file);
    if (pages > 0 && total) {
        write_number(total_file, *total > pages ? *total - pages : 0);
    }
}

std::string hugetlbfs_of(HugepageSize size, const std::string& preferred, const std::string& mounts) {
    const auto is_usable = [size](const std::string& folder) {
        struct statfs system{};
        return statfs(folder.c_str(), &system) == 0 && system.f_type == HUGETLBFS_MAGIC &&
               static_cast<uint64_t>(system.f_bsize) == page_kb(size) * 1024 &&
               access(folder.c_str(), W_OK) == 0;
    };
    if (is_usable(preferred)) {
        return preferred;
    }
    std::ifstream file(mounts);
    std::string line, source, folder, type;
    while (std::getline(file, line)) {
        std::istringstream(line) >> source >> folder >> type;
        if (type == "hugetlbfs" && is_usable(folder)) {
            return folder;
        }
    }
    return "";
}

}  // namespace penstock::drivers
