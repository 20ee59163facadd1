// SPDX-License-Identifier: Apache-2.0
// Messages for the operator about a port, the memory or the kernel. This room does not log. It passes texts
// to the caller's sink (penstockd logs them), so that tests can read them and no logging library is required.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace penstock::drivers {

enum class NoticeLevel : uint8_t { Debug, Info, Warning, Error };

// Called on the thread that runs the function to which the sink was passed. DPDK's own lines may come from
// any EAL thread, so a sink must be safe to call from several threads at once. The text is valid during the
// call only and has no trailing line break.
using NoticeSink = std::function<void(NoticeLevel, std::string_view)>;

}  // namespace penstock::drivers
