// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/service_name.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

std::vector<std::string> frontends_of(const v1::ServiceStatus& service) {
    std::vector<std::string> frontends;
    for (const v1::SocketAddress& address : service.listening()) {
        frontends.push_back(text_of(address));
    }
    return frontends;
}

// Distinct endpoints of all sets. A dual-stack Service has one set for each family.
size_t endpoints_of(const v1::Service& service) {
    std::set<std::pair<std::string, uint32_t>> places;
    for (const v1::BackendSet& set : service.sets()) {
        for (const v1::Endpoint& endpoint : set.endpoints()) {
            places.emplace(endpoint.address(), endpoint.port());
        }
    }
    return places.size();
}

Result<v1::ListServicesResponse> requested_services(Gateway& gateway, const Request& request) {
    PENSTOCK_TRY(const auto name, service_filter_from(request));
    v1::ListServicesRequest filter;
    filter.set_namespace_(name.namespace_name);
    filter.set_name(name.name);
    return gateway.services(filter);
}

Result<std::string> run_get_services(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto services, requested_services(*gateway, request));
    return structured(json_list(services.services()), request.format);
}

Result<Table> rows_of_services(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto services, requested_services(*gateway, request));
    return services_table(services, request.is_wide());
}

}  // namespace

std::string port_text(const v1::Service& service) {
    const std::string number = std::to_string(service.service_port());
    return service.key().port_name().empty() ? number : service.key().port_name() + ":" + number;
}

std::string standing_text(const v1::ServiceStatus& service) {
    std::string text = "ok";
    if (service.result().outcome() == v1::ServiceResult::OUTCOME_REFUSED) {
        text = "refused: " + service.result().why();
    } else if (service.listening().empty()) {
        text = "not served";
    } else if (endpoints_of(service.desired()) == 0) {
        text = "no endpoints";
    }
    const auto warnings =
        std::count_if(service.desired().notices().begin(), service.desired().notices().end(),
                      [](const v1::Notice& notice) { return notice.level() != v1::Notice::LEVEL_NORMAL; });
    if (warnings > 0) {
        text += ", " + std::to_string(warnings) + (warnings == 1 ? " warning" : " warnings");
    }
    return text;
}

Table services_table(const v1::ListServicesResponse& services, bool wide) {
    constexpr size_t kFrontendsShown = 3;
    std::vector<Table::Column> columns{{"NAMESPACE"},
                                       {"NAME"},
                                       {"PORT"},
                                       {"PROTO"},
                                       {"FRONTENDS"},
                                       {"BACKENDS", true},
                                       {"CONNECTIONS", true},
                                       {"NEW-FLOWS", true},
                                       {"STATUS"}};
    if (wide) {
        columns.insert(columns.end(), {{"SCHEDULER"},
                                       {"FORWARD-PACKETS", true},
                                       {"FORWARD-BYTES", true},
                                       {"REVERSE-PACKETS", true},
                                       {"REVERSE-BYTES", true},
                                       {"REJECTED", true},
                                       {"DROPPED", true}});
    }
    Table table(std::move(columns));
    for (const v1::ServiceStatus& service : services.services()) {
        const v1::Service& desired = service.desired();
        const v1::Traffic& traffic = service.traffic();
        const auto frontends = frontends_of(service);
        std::vector<std::string> cells{desired.key().namespace_(),
                                       desired.key().name(),
                                       port_text(desired),
                                       text_of(desired.key().protocol()),
                                       list_text(frontends, wide ? frontends.size() : kFrontendsShown),
                                       std::to_string(endpoints_of(desired)),
                                       std::to_string(service.connections()),
                                       std::to_string(traffic.new_flows()),
                                       standing_text(service)};
        if (wide) {
            cells.insert(cells.end(),
                         {text_of(desired.scheduler()), std::to_string(traffic.forward_packets()),
                          std::to_string(traffic.forward_bytes()), std::to_string(traffic.reverse_packets()),
                          std::to_string(traffic.reverse_bytes()), std::to_string(traffic.rejected()),
                          std::to_string(traffic.dropped())});
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_services() {
    return {.words = {"get", "services"},
            .aliases = {"service", "svc"},
            .arguments = "[NAME|NS/NAME]",
            .arguments_max = 1,
            .options = {"namespace", "all-namespaces", "output", "no-headers", "watch", "interval",
                        "all-gateways"},
            .summary = "List service ports with frontends, backends and counters",
            .run = run_get_services,
            .rows = rows_of_services};
}

}  // namespace penstock::cli
