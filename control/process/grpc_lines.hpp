// gRPC's own log lines. Without a sink gRPC writes them to standard error, in a form of its own between the records of a JSON log.
#pragma once

#include <string_view>

namespace penstock::process {

using GrpcLineSink = void (*)(bool is_error, std::string_view text);

// All lines go to `sink` from now on; null: nowhere. Includes keep_grpc_initialized(). Any thread; the last call counts.
void take_grpc_lines(GrpcLineSink sink);

// Initializes gRPC once and never shuts it down. Without this the last channel to close also shuts the library down, and after a large
// write that waits up to ten seconds for a poller of gRPC's own (tcp_posix.cc, run_poller). The process's end frees what it holds.
void keep_grpc_initialized();

}  // namespace penstock::process
