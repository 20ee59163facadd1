// SPDX-License-Identifier: Apache-2.0
// Takes memory for the tables of the workers, at the start.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "dataplane/base/result.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

// Zeroed memory for tables and ports: in hugepages if EAL has them, because the accesses are random. The
// caller owns it (RteFree). The error Exhausted names `what`, and the option that determines its size.
Result<std::span<std::byte>> take_huge(const std::string& what, size_t bytes, unsigned lcore,
                                       const char* option = "--connections");

// Memory of a table that may outlive the process, from the caller's provider if there is one. `owner` is set
// if it is EAL's.
Result<std::span<std::byte>> take_table(const TableMemory& provider, const std::string& name,
                                        const std::string& what, size_t bytes, unsigned lcore,
                                        const char* option, std::unique_ptr<std::byte, RteFree>& owner);

}  // namespace penstock::worker
