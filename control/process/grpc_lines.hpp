// SPDX-License-Identifier: Apache-2.0
// gRPC's own log lines. Without a sink gRPC writes them to standard error, in its own format, between the
// records of a JSON log.
#pragma once

#include <string_view>

namespace penstock::process {

using GrpcLineSink = void (*)(bool is_error, std::string_view text);

// Sends all following lines to `sink`; null: they are dropped. Includes keep_grpc_initialized(). Any thread;
// the last call counts.
void take_grpc_lines(GrpcLineSink sink);

// Initializes gRPC once and never shuts it down. Otherwise closing the last channel also shuts the library
// down, and after a large write that waits up to ten seconds for one of gRPC's pollers (tcp_posix.cc,
// run_poller). The memory is freed at process exit.
void keep_grpc_initialized();

}  // namespace penstock::process
