// SPDX-License-Identifier: Apache-2.0
#include "control/cli/service_name.hpp"

#include <set>

#include "control/cli/gateway.hpp"
#include "control/cli/request.hpp"
#include "control/options/values.hpp"

namespace penstock::cli {
namespace {

Result<ServiceName> with_namespace_of(const Request& request, ServiceName name) {
    if (name.namespace_name.empty()) {
        name.namespace_name = request.namespace_name;
    } else if (!request.namespace_name.empty() && request.namespace_name != name.namespace_name) {
        return fail(Errc::InvalidArgument, "service " + name.namespace_name + "/" + name.name +
                                               ": contradicts --namespace " + request.namespace_name);
    }
    return name;
}

// The namespaces with a Service of this name.
Result<std::set<std::string>> namespaces_with(Gateway& gateway, const std::string& name) {
    std::set<std::string> namespaces;
    v1::ListServicesRequest served;
    served.set_name(name);
    const auto services = gateway.services(served);
    if (!services && services.error().code != Errc::NotFound) {
        return std::unexpected(services.error());
    }
    if (services) {
        for (const v1::ServiceStatus& service : services->services()) {
            namespaces.insert(service.desired().key().namespace_());
        }
    }
    if (!namespaces.empty()) {
        return namespaces;
    }
    // The gateway has no Service that was refused an address. penstock-sync may be absent.
    v1::ListAddressesRequest known;
    known.set_name(name);
    if (const auto addresses = gateway.addresses(known)) {
        for (const v1::ServiceAddresses& service : addresses->services()) {
            namespaces.insert(service.service().namespace_());
        }
    }
    return namespaces;
}

}  // namespace

Result<ServiceName> parse_service_name(const std::string& text) {
    const size_t slash = text.find('/');
    if (text.empty() || slash == 0 || text.ends_with('/') || slash != text.rfind('/')) {
        return options::refuse(text, "must be NAME or NAMESPACE/NAME");
    }
    return slash == std::string::npos ? ServiceName{"", text}
                                      : ServiceName{text.substr(0, slash), text.substr(slash + 1)};
}

Result<ServiceName> service_filter_from(const Request& request) {
    if (request.arguments.empty()) {
        return ServiceName{request.namespace_name, ""};
    }
    PENSTOCK_TRY_IN("service", auto name, parse_service_name(request.arguments[0]));
    return with_namespace_of(request, std::move(name));
}

Result<ServiceName> service_name_from(Gateway& gateway, const Request& request) {
    PENSTOCK_TRY_IN("service", const auto name, parse_service_name(request.arguments.at(0)));
    return service_name_from(gateway, request, name);
}

Result<ServiceName> service_name_from(Gateway& gateway, const Request& request, const ServiceName& named) {
    PENSTOCK_TRY(auto name, with_namespace_of(request, named));
    if (!name.namespace_name.empty()) {
        return name;
    }
    PENSTOCK_TRY(const auto namespaces, namespaces_with(gateway, name.name));
    if (namespaces.empty()) {
        return fail(Errc::NotFound, "there is no service " + name.name +
                                        " in any namespace; penstockctl get services lists all");
    }
    if (namespaces.size() > 1) {
        std::string list;
        for (const std::string& each : namespaces) {
            list += (list.empty() ? "" : ", ") + each + "/" + name.name;
        }
        return fail(Errc::InvalidArgument,
                    "service " + name.name + ": several namespaces have this name; pass one of " + list);
    }
    name.namespace_name = *namespaces.begin();
    return name;
}

}  // namespace penstock::cli
