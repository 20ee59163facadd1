// SPDX-License-Identifier: Apache-2.0
// Keeps the records of a table file up to date with what is compiled: before workers get a configuration, the
// file says what its numbers mean. One thread at a time: the one that compiles.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/id_map.hpp"
#include "control/gateway/tables/table_file.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::gateway {

class NamesWriter {
 public:
    // `file` outlives the writer.
    explicit NamesWriter(TableFile& file) : file_(file) {}

    // `changed`: every service port that differs from the last call; others are harmless. Returns the first
    // record that could not be written; all others are.
    Status write(const Compiled& compiled, std::span<const model::ServiceKey> changed);
    // The same with all service ports.
    Status write(const Compiled& compiled);

 private:
    Status write_one(const model::ServiceKey& key, const Programmed* programmed);
    Status write_endpoints(const lb::Service* before, const lb::Service* now);

    TableFile& file_;
    // As they are in the file.
    struct Written {
        std::shared_ptr<const lb::Service> service;
        InternedText uid;
    };
    std::unordered_map<model::ServiceKey, Written, ServiceKeyHash> written_;
};

}  // namespace penstock::gateway
