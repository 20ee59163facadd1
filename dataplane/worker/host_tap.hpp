// SPDX-License-Identifier: Apache-2.0
// The twin I/O thread's side of a packet capture: records the frames that this thread drops, which no worker
// sees. Exists only while a capture runs. Frames have no connection here, so a capture of a Service has none
// of them.
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/capture/record_ring.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/tap.hpp"

namespace penstock::worker {

class HostTap {
 public:
    // `ring_slots`: a power of two.
    HostTap(const pipeline::TapOptions& options, uint32_t ring_slots)
        : options_(options), ring_(ring_slots, options.snap_bytes) {}

    // A frame is about to be freed. `port`: that of the twin. `ticks`: reading of the TSC. Twin I/O thread.
    void dropped(NicPortId port, DropReason reason, ByteView frame, uint64_t ticks) noexcept;

    // Read by the thread of the capture.
    [[nodiscard]] capture::RecordRing& ring() noexcept { return ring_; }

 private:
    [[nodiscard]] bool selects(ByteView frame) const noexcept;

    const pipeline::TapOptions options_;
    capture::RecordRing ring_;
};

}  // namespace penstock::worker
