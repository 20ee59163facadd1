// SPDX-License-Identifier: Apache-2.0
// The kernel's pool of hugepages: checks whether enough are free, and reserves the missing ones for the life
// of the process.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/result.hpp"
#include "drivers/eal/hugepage_size.hpp"

namespace penstock::drivers {

// The kernel's folder with one subfolder per page size: hugepages-2048kB/{nr,free,resv}_hugepages. A test
// passes a folder of its own.
inline constexpr const char* kHugepagePools = "/sys/kernel/mm/hugepages";

// The file that HugepageTurn locks. A file below /sys would not do: `ip netns exec` mounts a /sys of its own,
// so one path is another file in each network namespace. Processes that share a /proc exclude each other.
inline constexpr const char* kHugepageTurnFile = "/proc/sys/vm/nr_hugepages";

// Lock of all penstockd processes of a machine on the hugepage pool. Only its holder changes the pool or
// relies on a count of free pages. Otherwise two processes that start at once would both count the same free
// pages, and DPDK in the slower one would find none. It is a lock on the kernel's own file, so it works
// across network namespaces, leaves no file behind, and ends with the process. Blocks for the duration of
// another start, about a second.
class HugepageTurn {
 public:
    explicit HugepageTurn(const std::string& file = kHugepageTurnFile);
    ~HugepageTurn();
    HugepageTurn(const HugepageTurn&) = delete;
    HugepageTurn& operator=(const HugepageTurn&) = delete;

 private:
    int fd_;  // negative if the kernel has no pool: then there is nothing to lock
};

// Makes `memory_mb` of free hugepages of this size available. Returns the number of pages of page_kb(size)
// that were added to the kernel's pool: 0 if the free pages (Any: of all sizes) are already enough.
// Exhausted: the kernel could not allocate them (the pages that it did add are released). PermissionDenied:
// too few are free and this process may not add any. Unsupported: no such hugepages in this kernel.
[[nodiscard]] Result<uint64_t> reserve_hugepages(uint64_t memory_mb, HugepageSize size = HugepageSize::Any,
                                                 const std::string& pools = kHugepagePools);

// Removes `pages` pages of page_kb(size) from the kernel's pool. Pages that are still mapped leave the pool
// when they are unmapped.
void release_hugepages(uint64_t pages, HugepageSize size = HugepageSize::Any,
                       const std::string& pools = kHugepagePools);

// Free pages of this size that are not reserved for another mapping; 0 if the kernel has no such pages.
[[nodiscard]] uint64_t available_pages(HugepageSize size, const std::string& pools = kHugepagePools);

// Folder where a hugetlbfs with pages of this size is mounted and can be written to: `preferred` if it is
// one, otherwise the first of `mounts`. "": none.
[[nodiscard]] std::string hugetlbfs_of(HugepageSize size, const std::string& preferred = "/dev/hugepages",
                                       const std::string& mounts = "/proc/self/mounts");

}  // namespace penstock::drivers
