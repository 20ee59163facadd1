// The kernel's pool of 2 MB pages: how many are free, and borrowing what is missing for as long as the process lives.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::drivers {

struct HugepageReservation {
    uint64_t page_kb = 2048;
    uint64_t pages_added = 0;  // what release_hugepages() has to give back
};

// Makes `memory_mb` of free hugepages available, adding to the kernel's pool only what is missing. `pool` is the kernel's folder
// of one page size; a test gives its own. Exhausted: the kernel could not gather the pages (what it did add is given back).
// PermissionDenied: too few are free and this process may not add any. Unsupported: no hugepages in this kernel.
[[nodiscard]] Result<HugepageReservation> reserve_hugepages(unsigned memory_mb,
                                                            const std::string& pool = "/sys/kernel/mm/hugepages/hugepages-2048kB");
// Takes `pages` out of the kernel's pool again. Pages still in use leave it when their process ends.
void release_hugepages(uint64_t pages, const std::string& pool = "/sys/kernel/mm/hugepages/hugepages-2048kB");

}  // namespace penstock::drivers
