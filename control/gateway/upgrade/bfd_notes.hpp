// SPDX-License-Identifier: Apache-2.0
// BFD sessions in the messages of an upgrade. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/bfd/session_book.hpp"
#include "dataplane/base/ids.hpp"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::gateway {

[[nodiscard]] v1::HandedBfd proto_of(std::span<const bfd::SessionBook::Kept> sessions, uint8_t version);
// `port_of`: the port of a twin; unset: the successor has no such twin. Sessions that are invalid, or whose
// twin is gone, are left out; bfdd sees them go down.
[[nodiscard]] std::vector<bfd::SessionBook::Kept> kept_of(
    const v1::HandedBfd& handed, const std::function<NicPortId(const std::string& twin)>& port_of);

}  // namespace penstock::gateway
