// SPDX-License-Identifier: Apache-2.0
// The comment of a captured packet: what the gateway has decided about it, as words `name=value`.
#pragma once

#include <functional>
#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/capture/record.hpp"

namespace penstock::capture {

// Names of ids; "" if there is none.
struct Names {
    std::function<std::string(ServiceId)> service;  // "default/web:http"
    std::function<std::string(BackendId)> backend;  // "10.2.0.7:9376"
    std::function<std::string(NicPortId)> port;     // of the twin
};

// "verdict=transmit worker=1 port=p0 connection=1-4711-5 service=default/web:http backend=10.2.0.7:9376". A
// drop has reason=; a packet that another worker received has receiver=.
[[nodiscard]] std::string comment_of(const Record& record, const Names& names);

}  // namespace penstock::capture
