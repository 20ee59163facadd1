// SPDX-License-Identifier: Apache-2.0
// The version of the software.
#pragma once

namespace penstock::gateway {

extern const char* const kVersion;

}  // namespace penstock::gateway
