// The port entries of a Service that may be served. A bad entry takes nothing with it but itself (SVC-010..012).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::semantics {

struct ServicePort {
    std::string name;  // "" where unnamed
    Protocol protocol = Protocol::Tcp;
    L4Port port = 0;
    L4Port node_port = 0;  // 0: none
    bool operator==(const ServicePort&) const = default;
};

// TCP, UDP, SCTP in upper case, and nothing else (SVC-012).
[[nodiscard]] std::optional<Protocol> parse_protocol(std::string_view text) noexcept;

// 1-65535 (SVC-010).
[[nodiscard]] constexpr bool is_l4_port(int64_t number) noexcept {
    return number >= 1 && number <= 65'535;
}

// In the order of the object. Of two entries with one name, or with one (port, protocol), the first good one is kept, as an API server
// would have refused the second.
[[nodiscard]] std::vector<ServicePort> valid_ports(const kube::Service& service, Notices& notices);

}  // namespace penstock::semantics
