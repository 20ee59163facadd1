#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run(Gateway* gateway, const Request& request) {
    const auto ports = gateway->ports();
    if (!ports) {
        return std::unexpected(ports.error());
    }
    return request.is_structured() ? structured(json_list(ports->ports()), request.format) : ports_table(*ports, request.is_wide());
}

}  // namespace

std::string ports_table(const v1::ListPortsResponse& ports, bool wide) {
    constexpr size_t kAddressesShown = 2;
    std::vector<Table::Column> columns{{"ID", true},       {"TWIN"},         {"ADDRESSES"}, {"DRIVER"},           {"LINK"},
                                       {"MTU", true},      {"QUEUES", true}, {"STEERING"},  {"RX-PACKETS", true}, {"TX-PACKETS", true},
                                       {"RX-MISSED", true}};
    if (wide) {
        columns.insert(columns.end(), {{"NAME"},
                                       {"MAC"},
                                       {"RX-BYTES", true},
                                       {"TX-BYTES", true},
                                       {"PUNTED", true},
                                       {"FROM-HOST", true},
                                       {"OFFLOADS"},
                                       {"STEERING-REASON"}});
    }
    Table table(std::move(columns));
    for (const v1::Port& port : ports.ports()) {
        const std::vector<std::string> addresses(port.addresses().begin(), port.addresses().end());
        std::vector<std::string> cells{std::to_string(port.id()),
                                       port.twin(),
                                       list_text(addresses, wide ? addresses.size() : kAddressesShown),
                                       port.driver(),
                                       port.link_up() ? "up" : "down",
                                       std::to_string(port.mtu()),
                                       std::to_string(port.rx_queues()) + "/" + std::to_string(port.tx_queues()),
                                       port.steering(),
                                       std::to_string(port.rx_packets()),
                                       std::to_string(port.tx_packets()),
                                       std::to_string(port.rx_missed())};
        if (wide) {
            const std::vector<std::string> offloads(port.offloads().begin(), port.offloads().end());
            cells.insert(cells.end(), {port.name(), port.mac(), std::to_string(port.rx_bytes()), std::to_string(port.tx_bytes()),
                                       std::to_string(port.punted()), std::to_string(port.from_host()),
                                       list_text(offloads, offloads.size()), port.steering_reason()});
        }
        table.add(std::move(cells));
    }
    return table.text();
}

Command get_ports() {
    return {.words = {"get", "ports"},
            .options = {"output", "watch", "interval"},
            .summary = "NIC ports: Linux twin, driver, how replies find their worker, traffic",
            .run = run};
}

}  // namespace penstock::cli
