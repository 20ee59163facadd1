// SPDX-License-Identifier: Apache-2.0
// Compiles a filter of libpcap's language (pcap-filter(7)) for Ethernet frames.
#pragma once

#include <string>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/capture/program.hpp"

namespace penstock::cli {

// No instructions for an empty text: every packet. InvalidArgument has libpcap's message and the place. Host
// names are resolved on this machine.
[[nodiscard]] Result<std::vector<capture::Instruction>> compile_filter(const std::string& text);

}  // namespace penstock::cli
