// SPDX-License-Identifier: Apache-2.0
// The valid port entries of a Service. An invalid entry is skipped and does not affect the others
// (SVC-010..012).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::semantics {

// A valid port entry.
struct ValidPort {
    std::string name;  // "" if unnamed
    Protocol protocol = Protocol::Tcp;
    L4Port port = 0;
    L4Port node_port = 0;  // 0: none
    bool operator==(const ValidPort&) const = default;
};

// Accepts TCP, UDP and SCTP in upper case only (SVC-012).
[[nodiscard]] std::optional<Protocol> parse_protocol(std::string_view text) noexcept;

// 1-65535 (SVC-010).
[[nodiscard]] constexpr bool is_l4_port(int64_t number) noexcept {
    return number >= 1 && number <= 65'535;
}

// The valid entries in the order of the object. Of two entries with the same name, or with the same (port,
// protocol), the first valid one is kept. An API server would have refused the second.
[[nodiscard]] std::vector<ValidPort> valid_ports(const kube::Service& service, Notices& notices);

}  // namespace penstock::semantics
