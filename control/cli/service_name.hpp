// SPDX-License-Identifier: Apache-2.0
// The name of a Service on the command line: "shop/web", or "web". Every command with such a name uses this,
// so a bare name has one meaning: any namespace, or that of --namespace. A command about a single Service
// refuses a bare name that several namespaces have.
#pragma once

#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::cli {

class Gateway;
struct Request;

struct ServiceName {
    std::string namespace_name, name;  // "": any
};

// The form alone. The error names the text and the rule, not the option.
[[nodiscard]] Result<ServiceName> parse_service_name(const std::string& text);

// For lists: the argument, if any, with the namespace of --namespace if it has none. InvalidArgument if the
// argument is malformed or contradicts --namespace.
[[nodiscard]] Result<ServiceName> service_filter_from(const Request& request);

// For a command about one Service, which its first argument names; capture has `named`, the value of
// --service. A bare name without --namespace is looked up: at the gateway, then among the Services of
// penstock-sync, if the gateway object is connected to it. Both parts of the result are set. NotFound: no
// namespace has such a Service. InvalidArgument also if several have one; the error lists them.
[[nodiscard]] Result<ServiceName> service_name_from(Gateway& gateway, const Request& request);
[[nodiscard]] Result<ServiceName> service_name_from(Gateway& gateway, const Request& request,
                                                    const ServiceName& named);

}  // namespace penstock::cli
