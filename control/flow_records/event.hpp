// SPDX-License-Identifier: Apache-2.0
// A flow record with the names behind its ids, as it is written to files and sent to a collector.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/pipeline/state/flow_record.hpp"

namespace penstock::flow_records {

// A service port. All empty: its name is not known any more.
struct ServiceFacts {
    std::string namespace_name, name, port_name;
    std::string folder = "default";  // below the folder of the gateway: the sink, "/" and the prefix, if any
    uint32_t interval_min = 60;      // rotation of its file
    std::string tags = {};           // is_log_tags(), or ""
    bool operator==(const ServiceFacts&) const = default;
};

// Of all records of a process.
struct Origin {
    std::string gateway;
    uint32_t one_in = 1;     // sampling rate
    uint32_t started_s = 0;  // start of the process, since 1970
};

struct Event {
    const pipeline::TimedFlowRecord& flow;
    const ServiceFacts& service;

    [[nodiscard]] bool is_end() const noexcept {
        return flow.record.event == pipeline::FlowRecord::Event::End;
    }
};

}  // namespace penstock::flow_records
