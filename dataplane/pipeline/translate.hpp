// Stage 5: rewrite addresses, ports and TTL of packets that have a connection, with their checksums.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

void translate(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
