// What an operator should hear about a port, the memory or the kernel. This room logs nothing: it hands texts to whoever opened it
// (penstockd logs them), so that tests can read them and nobody is forced into a logging library.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace penstock::drivers {

enum class NoticeLevel : uint8_t { Debug, Info, Warning, Error };

// Called from the thread that runs the function the sink was given to; DPDK's own lines may come from any EAL thread, so a sink must be
// safe to call from several threads at once. The text is valid during the call only and ends without a line break.
using NoticeSink = std::function<void(NoticeLevel, std::string_view)>;

}  // namespace penstock::drivers
