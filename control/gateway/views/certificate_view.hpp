// SPDX-License-Identifier: Apache-2.0
// The certificate of the TCP listeners as a message, for `penstockctl status`. Pure.
#pragma once

#include <string>

#include "control/tls/material.hpp"
#include "penstock/v1/status.pb.h"

namespace penstock::gateway {

// `error`: why the newest files are not in use; "": they are. The rule for a late renewal is that of the log
// (tls::ExpiryNotice).
[[nodiscard]] v1::Certificate certificate_message(const tls::Material& material, const std::string& error,
                                                  tls::Material::Time now);

}  // namespace penstock::gateway
