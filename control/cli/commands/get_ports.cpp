// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_ports(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto ports, gateway->ports());
    return structured(json_list(ports.ports()), request.format);
}

Result<Table> rows_of_ports(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto ports, gateway->ports());
    return ports_table(ports, request.is_wide());
}

// The names of the settings with a reason. The reasons are too long for a table; -o yaml prints them.
std::vector<std::string> not_as_asked(const v1::Port& port) {
    std::vector<std::string> names;
    for (const v1::PortSetting& setting : port.settings()) {
        if (!setting.reason().empty()) {
            names.push_back(setting.name());
        }
    }
    return names;
}

}  // namespace

Table ports_table(const v1::ListPortsResponse& ports, bool wide) {
    constexpr size_t kAddressesShown = 2;
    std::vector<Table::Column> columns{{"ID", true},         {"TWIN"},           {"ADDRESSES"},
                                       {"DRIVER"},           {"LINK"},           {"MTU", true},
                                       {"QUEUES", true},     {"STEERING"},       {"RX-PACKETS", true},
                                       {"TX-PACKETS", true}, {"RX-MISSED", true}};
    if (wide) {
        columns.insert(columns.end(), {{"NAME"},
                                       {"MAC"},
                                       {"RX-BYTES", true},
                                       {"TX-BYTES", true},
                                       {"PUNTED", true},
                                       {"FROM-HOST", true},
                                       {"FROM-HOST-LOST", true},
                                       {"HANDED-OFF", true},
                                       {"HANDOFF-LOST", true},
                                       {"MISPLACED", true},
                                       {"STATE"},
                                       {"MEMBERS"},
                                       {"OFFLOADS"},
                                       {"NOT-AS-ASKED"},
                                       {"STEERING-REASON"}});
    }
    Table table(std::move(columns));
    for (const v1::Port& port : ports.ports()) {
        const std::vector<std::string> addresses(port.addresses().begin(), port.addresses().end());
        std::vector<std::string> cells{
            std::to_string(port.id()),
            port.twin(),
            list_text(addresses, wide ? addresses.size() : kAddressesShown),
            port.driver(),
            port.state() == "removed" ? port.state()
            : port.link_up()          ? "up"
                                      : "down",
            std::to_string(port.mtu()),
            std::to_string(port.rx_queues()) + "/" + std::to_string(port.tx_queues()),
            port.steering(),
            std::to_string(port.rx_packets()),
            std::to_string(port.tx_packets()),
            std::to_string(port.rx_missed())};
        if (wide) {
            const std::vector<std::string> offloads(port.offloads().begin(), port.offloads().end());
            const std::vector<std::string> members(port.members().begin(), port.members().end());
            const std::vector<std::string> refused = not_as_asked(port);
            cells.insert(
                cells.end(),
                {port.name(), port.mac(), std::to_string(port.rx_bytes()), std::to_string(port.tx_bytes()),
                 std::to_string(port.punted()), std::to_string(port.from_host()),
                 std::to_string(port.from_host_dropped() + port.twin_dropped()),
                 std::to_string(port.handed_off()), std::to_string(port.handoff_lost()),
                 std::to_string(port.replies_misplaced()), port.state(), list_text(members, members.size()),
                 list_text(offloads, offloads.size()), list_text(refused, refused.size()),
                 port.steering_reason()});
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_ports() {
    return {.words = {"get", "ports"},
            .aliases = {"port"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List NIC ports: Linux twin, driver, reply steering, traffic",
            .run = run_get_ports,
            .rows = rows_of_ports};
}

}  // namespace penstock::cli
