// The kernel's pool of hugepages: whether enough are free, and borrowing what is missing for as long as the process lives.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::drivers {

// Where the kernel keeps one folder a page size: hugepages-2048kB/{nr,free,resv}_hugepages. A test gives a folder of its own.
inline constexpr const char* kHugepagePools = "/sys/kernel/mm/hugepages";

// Its holder alone of all penstockd on this machine changes the pool, or relies on what it counted there: two that start at once would
// otherwise both count the same free pages, and the slower one's DPDK would find none. A lock on the kernel's own file, so it reaches over
// mount and network namespaces, leaves no file behind, and ends with the process. Waits for as long as a start takes, about a second.
class HugepageTurn {
 public:
    explicit HugepageTurn(const std::string& pools = kHugepagePools);
    ~HugepageTurn();
    HugepageTurn(const HugepageTurn&) = delete;
    HugepageTurn& operator=(const HugepageTurn&) = delete;

 private:
    int fd_;  // negative where the kernel has no pool: then there is nothing to take turns at
};

// Makes `memory_mb` of free hugepages available and says how many 2 MB pages it had to add to the kernel's pool for that: none where the
// pages that are there already, of any size, are enough. Exhausted: the kernel could not gather them (what it did add is given back).
// PermissionDenied: too few are free and this process may not add any. Unsupported: no hugepages in this kernel.
[[nodiscard]] Result<uint64_t> reserve_hugepages(unsigned memory_mb,
                                                 const std::string& pools = kHugepagePools);

// Takes so many 2 MB pages out of the kernel's pool again. Pages still mapped leave it when they are unmapped.
void release_hugepages(uint64_t pages, const std::string& pools = kHugepagePools);

}  // namespace penstock::drivers
