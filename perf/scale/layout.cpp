// SPDX-License-Identifier: Apache-2.0
// The memory of many connections, as the rooms request it from the allocator: the layout of tables that no
// machine here may have the memory for. Output: lines of `name value unit`, and a gate.
//
//   layout CONNECTIONS WORKERS BYTES    BYTES: of a connection, as documented
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "dataplane/base/limits.hpp"
#include "dataplane/conn/backend_index.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/nat/port_proposer.hpp"
#include "perf/harness/report.hpp"

int main(int argc, char** argv) {
    using namespace penstock;
    const auto number = [&](int i) { return i < argc ? std::strtod(argv[i], nullptr) : 0.0; };
    const double connections = number(1), workers = number(2), documented = number(3);
    if (argc != 4 || connections < 1 || workers < 1 || documented <= 0) {
        std::fputs("usage: layout CONNECTIONS WORKERS BYTES\n", stderr);
        return 2;
    }
    const auto each = static_cast<uint32_t>(connections / workers);
    const std::string at = "." + std::to_string(static_cast<unsigned long>(connections / 1e6)) + "M";
    const double table = workers * static_cast<double>(conn::Table::memory_needed(each));
    const double ports = workers * static_cast<double>(nat::PortProposer::memory_needed(
                                       each, {}, static_cast<uint32_t>(workers)));
    const double links = workers * static_cast<double>(each) * sizeof(conn::BackendLink);
    perf::print_value("scale.table" + at, table / 1e9, "GB");
    perf::print_value("scale.snat_ports" + at, ports / 1e9, "GB");
    perf::print_value("scale.endpoint_lists" + at, links / 1e9, "GB");
    const double bytes = (table + ports + links) / connections;
    perf::print_value("scale.bytes_per_connection" + at, bytes, "bytes");
    perf::print_gate_at_most("SCALE-LAYOUT", std::abs(bytes - documented), 0.5);
    return 0;
}
