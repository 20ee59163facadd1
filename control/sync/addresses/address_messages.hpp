// SPDX-License-Identifier: Apache-2.0
// Messages of the status service about addresses from pools, for penstockctl. Pure.
#pragma once

#include <string>

#include "control/ipam/pool.hpp"
#include "control/sync/addresses/address_status.hpp"
#include "penstock/v1/sync.pb.h"

namespace penstock::sync {

// "203.0.113.0/24" for a range that is one prefix, otherwise "203.0.113.10-203.0.113.20".
[[nodiscard]] std::string range_text(const ipam::AddressRange& range);

[[nodiscard]] v1::ListPoolsResponse pools_message(const AddressStatus& status);
// Only the Services that the request selects.
[[nodiscard]] v1::ListAddressesResponse addresses_message(const AddressStatus& status,
                                                          const v1::ListAddressesRequest& request);

}  // namespace penstock::sync
