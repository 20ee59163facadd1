// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/table_memory.hpp"

#include <rte_lcore.h>
#include <rte_malloc.h>

namespace penstock::worker {

Result<std::span<std::byte>> take_huge(const std::string& what, size_t bytes, unsigned lcore,
                                       const char* option) {
    auto* memory = static_cast<std::byte*>(rte_zmalloc_socket(
        what.c_str(), bytes, RTE_CACHE_LINE_SIZE, static_cast<int>(rte_lcore_to_socket_id(lcore))));
    if (memory == nullptr) {
        return fail(Errc::Exhausted,
                    what + " needs " + std::to_string(bytes >> 20) +
                        " MB, more than is free in EAL's memory: raise --memory-mb or lower " + option);
    }
    return std::span(memory, bytes);
}

Result<std::span<std::byte>> take_table(const TableMemory& provider, const std::string& name,
                                        const std::string& what, size_t bytes, unsigned lcore,
                                        const char* option, std::unique_ptr<std::byte, RteFree>& owner) {
    if (provider) {
        return provider(name, bytes, static_cast<int>(rte_lcore_to_socket_id(lcore)));
    }
    PENSTOCK_TRY(const auto taken, take_huge(what, bytes, lcore, option));
    owner.reset(taken.data());
    return taken;
}

}  // namespace penstock::worker
