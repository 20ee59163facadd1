#include "dataplane/pipeline/blocked.hpp"

namespace penstock::pipeline {

void drop_blocked(const route::PrefixSet& blocked, Burst& burst) noexcept {
    for (uint32_t i = 0; i < burst.count; ++i) {
        // What is dropped already keeps its reason: of a frame that could not be read there is no source to ask for.
        const bool is_alive = burst.verdict[i] != Verdict::Drop;
        if (is_alive && !burst.arrival[i].note.from_host && burst.parsed[i].kind != packet::PacketKind::Other &&
            blocked.contains(burst.parsed[i].key.source)) {
            burst.drop(i, DropReason::SourceBlocked);
        }
    }
    PacketList left;
    for (uint32_t at = 0; at < burst.flows.count; ++at) {
        if (burst.under_way(burst.flows.at[at])) {
            left.add(burst.flows.at[at]);
        }
    }
    burst.flows = left;
}

}  // namespace penstock::pipeline
