// SPDX-License-Identifier: Apache-2.0
// BFD sessions between the bursts of a worker (docs/adr/0049). Received packets are recognised where they
// would be punted to Linux, so other packets cost nothing.
#pragma once

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/pipeline/state/io.hpp"

namespace penstock::pipeline {

// The worker that runs the sessions.
inline constexpr WorkerId kBfdWorker{0};

enum class BfdTake : uint8_t {
    Other,     // no BFD packet of a session: Linux gets it
    HandOver,  // kBfdWorker decides
    Taken,     // the caller frees it
};
// For a frame that would be punted. If ctx.bfd is set.
[[nodiscard]] BfdTake take_bfd(WorkerContext& ctx, ByteView frame, const packet::Parsed& parsed,
                               NicPortId port) noexcept;

// Sends the packets that are due. On kBfdWorker, if ctx.bfd is set; at the end of a round.
void run_bfd(WorkerContext& ctx, WorkerIo& io) noexcept;

}  // namespace penstock::pipeline
