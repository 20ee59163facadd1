// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/service_name.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

const char* class_text(v1::FrontendClass cls) {
    switch (cls) {
        case v1::FRONTEND_CLASS_CLUSTER_IP:
            return "ClusterIP";
        case v1::FRONTEND_CLASS_LOAD_BALANCER_IP:
            return "LoadBalancer";
        case v1::FRONTEND_CLASS_EXTERNAL_IP:
            return "ExternalIP";
        case v1::FRONTEND_CLASS_NODE_PORT:
            return "NodePort";
        default:
            return "unknown";
    }
}

const char* source_text(v1::SourceMode mode) {
    return mode == v1::SOURCE_MODE_KEEP ? "kept: backends see the client"
                                        : "translated: backends see the gateway";
}

const char* endpoints_text(const v1::BackendSet& set) {
    return !set.translates_family() ? "endpoints"
           : set.ipv6()             ? "IPv4 endpoints behind IPv6 frontends"
                                    : "IPv6 endpoints behind IPv4 frontends";
}

const char* empty_text(v1::EmptyAction action) {
    switch (action) {
        case v1::EMPTY_ACTION_DROP:
            return "drop silently, as the Service requests";
        case v1::EMPTY_ACTION_DROP_NO_LOCAL:
            return "drop silently: usable endpoints are on other nodes only";
        default:
            return "reject";
    }
}

std::string frontends_text(const v1::ServiceStatus& service) {
    if (service.desired().frontends().empty()) {
        return indented_line("Frontends", "none");
    }
    Table table({{"CLASS"}, {"ADDRESS"}, {"PORT", true}, {"SET", true}, {"SOURCE-RANGES"}});
    for (const v1::Frontend& frontend : service.desired().frontends()) {
        const bool is_node_port = frontend.class_() == v1::FRONTEND_CLASS_NODE_PORT;
        table.add({class_text(frontend.class_()),
                   is_node_port ? (frontend.ipv6() ? "IPv6 node addresses" : "IPv4 node addresses")
                                : frontend.address(),
                   std::to_string(frontend.port()), std::to_string(frontend.set()),
                   frontend.filtered() ? "apply" : ""});
    }
    std::vector<std::string> listening;
    for (const v1::SocketAddress& address : service.listening()) {
        listening.push_back(text_of(address));
    }
    return indented_line("Listening on",
                         listening.empty() ? "nothing" : list_text(listening, listening.size())) +
           "  Frontends:\n" + table.text(4);
}

std::string ranges_text(const v1::Service& service) {
    std::string text;
    for (const std::string& range : service.source_ranges()) {
        text += (text.empty() ? (service.source_ranges_deny() ? "all but " : "") : ",") + range;
    }
    return text;
}

std::string notices_text(const v1::ServiceStatus& service) {
    if (service.desired().notices().empty() && service.observed().empty()) {
        return "";
    }
    Table table({{"LEVEL"}, {"REASON"}, {"MESSAGE"}});
    for (const auto* notices : {&service.desired().notices(), &service.observed()}) {
        for (const v1::Notice& notice : *notices) {
            table.add({notice.level() == v1::Notice::LEVEL_NORMAL ? "Normal" : "Warning", notice.reason(),
                       notice.message()});
        }
    }
    return "  Notices:\n" + table.text(4);
}

bool is_same(const v1::ServiceKey& a, const v1::ServiceKey& b) {
    return a.namespace_() == b.namespace_() && a.name() == b.name() && a.port_name() == b.port_name() &&
           a.protocol() == b.protocol();
}

std::string backends_text(const v1::ServiceKey& key, const v1::ListBackendsResponse& backends) {
    Table table({{"BACKEND"},
                 {"STATE"},
                 {"HEALTH"},
                 {"SETS"},
                 {"NODE"},
                 {"ZONE"},
                 {"CONNECTIONS", true},
                 {"OPEN", true},
                 {"NEW-FLOWS", true}});
    bool any = false;
    for (const v1::BackendStatus& backend : backends.backends()) {
        if (!is_same(backend.service(), key)) {
            continue;
        }
        any = true;
        std::vector<std::string> sets;
        for (const uint32_t set : backend.sets()) {
            sets.push_back(std::to_string(set));
        }
        table.add({socket_text(backend.endpoint().address(), backend.endpoint().port()),
                   sets.empty() ? "draining" : "serving", health_text(backend.health()),
                   list_text(sets, sets.size()), backend.endpoint().node_name(), backend.endpoint().zone(),
                   std::to_string(backend.connections()), std::to_string(backend.open_connections()),
                   std::to_string(backend.new_flows())});
    }
    return any ? "  Backends:\n" + table.text(4) : indented_line("Backends", "none");
}

std::string traffic_text(const v1::ServiceStatus& service) {
    const v1::Traffic& traffic = service.traffic();
    return indented_line("Connections", std::to_string(service.connections()) + " including TIME-WAIT, " +
                                            std::to_string(traffic.new_flows()) + " since start") +
           indented_line("To backends", std::to_string(traffic.forward_packets()) + " packets, " +
                                            std::to_string(traffic.forward_bytes()) + " bytes") +
           indented_line("To clients", std::to_string(traffic.reverse_packets()) + " packets, " +
                                           std::to_string(traffic.reverse_bytes()) + " bytes") +
           indented_line("Refused", std::to_string(traffic.rejected()) + " rejected, " +
                                        std::to_string(traffic.dropped()) + " dropped silently");
}

std::string port_description(const v1::ServiceStatus& service, const v1::ListBackendsResponse& backends) {
    const v1::Service& desired = service.desired();
    std::string text = "Service " + text_of(desired.key()) + "\n" +
                       indented_line("Port", std::to_string(desired.service_port())) +
                       indented_line("Status", standing_text(service)) +
                       indented_line("Scheduler", text_of(desired.scheduler()));
    for (int i = 0; i < desired.sets_size(); ++i) {
        const v1::BackendSet& set = desired.sets(i);
        text += indented_line("Set " + std::to_string(i),
                              std::to_string(set.endpoints_size()) + " " + endpoints_text(set) +
                                  "; client address " + source_text(set.source()) +
                                  "; when empty: " + empty_text(set.when_empty()));
    }
    if (!desired.access_log().tags().empty()) {
        text += indented_line("Tags", desired.access_log().tags());
    }
    const std::string ranges = ranges_text(desired);
    if (!ranges.empty()) {
        text += indented_line("Source ranges", ranges);
    }
    return text + frontends_text(service) + backends_text(desired.key(), backends) + traffic_text(service) +
           notices_text(service);
}

// The Service's refusal by penstock-sync. Empty if nothing is refused, or if penstock-sync is not reachable
// or assigns no addresses.
std::optional<v1::ServiceAddresses> refusal_of(Gateway& gateway, const ServiceName& service) {
    v1::ListAddressesRequest which;
    which.set_namespace_(service.namespace_name);
    which.set_name(service.name);
    const auto addresses = gateway.addresses(which);
    return addresses && addresses->services_size() == 1 && addresses->services(0).has_refusal()
               ? std::optional(addresses->services(0))
               : std::nullopt;
}

Result<std::string> run_describe_service(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto named, service_name_from(*gateway, request));
    const std::string& namespace_name = named.namespace_name;
    v1::ListServicesRequest which;
    which.set_namespace_(namespace_name);
    which.set_name(named.name);
    auto found = gateway->services(which);
    if (!found && found.error().code != Errc::NotFound) {
        return std::unexpected(found.error());
    }
    const v1::ListServicesResponse services = found ? *std::move(found) : v1::ListServicesResponse();
    if (services.services().empty()) {
        const auto refused = refusal_of(*gateway, named);
        return fail(Errc::NotFound,
                    "there is no service " + namespace_name + "/" + which.name() +
                        (refused ? " at the gateway; penstock-sync refuses its request for an address: " +
                                       refused->refusal().reason() + ": " + refused->refusal().message()
                                 : ""));
    }
    if (request.is_structured()) {
        return structured(json_list(services.services()), request.format);
    }
    v1::ListBackendsRequest of;
    of.set_namespace_(namespace_name);
    of.set_service(which.name());
    PENSTOCK_TRY(const auto backends, gateway->backends(of));
    const auto refused = refusal_of(*gateway, named);
    return service_description(services, backends) + (refused ? "\n" + refusal_description(*refused) : "");
}

}  // namespace

std::string service_description(const v1::ListServicesResponse& services,
                                const v1::ListBackendsResponse& backends) {
    std::string text;
    for (const v1::ServiceStatus& service : services.services()) {
        text += (text.empty() ? "" : "\n") + port_description(service, backends);
    }
    return text;
}

Command describe_service() {
    return {
        .words = {"describe", "service"},
        .aliases = {"services", "svc"},
        .arguments = "NAME|NS/NAME",
        .arguments_min = 1,
        .arguments_max = 1,
        .options = {"namespace", "output", "watch", "interval", "all-gateways"},
        .summary = "everything about one Service: frontends, backends, traffic, and what is wrong with it",
        .reads_addresses = true,
        .run = run_describe_service};
}

}  // namespace penstock::cli
