// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/version.hpp"

namespace penstock::gateway {

const char* const kVersion = PENSTOCK_VERSION;  // from the top meson.build

}  // namespace penstock::gateway
