// SPDX-License-Identifier: Apache-2.0
// The unit of penstockd as systemd reads it: the unit file and its drop-ins, from the folders of
// systemd.unit(5).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/host/root.hpp"

namespace penstock::host {

struct UnitSetting {
    std::string value;
    std::string file;  // that has it
};

// The last value of `key` ("LimitNOFILE") in the unit ("penstock-gateway.service"): of its file with the
// highest precedence, then of its drop-ins in the order of their names. Nullopt: no such unit, or no such
// key.
[[nodiscard]] std::optional<UnitSetting> unit_setting(const Root& root, std::string_view unit,
                                                      std::string_view key);

}  // namespace penstock::host
