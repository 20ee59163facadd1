// The version of the software, from the top meson.build.
#pragma once

namespace penstock::gateway {

inline constexpr const char* kVersion = PENSTOCK_VERSION;

}  // namespace penstock::gateway
