#include "dataplane/pipeline/heard.hpp"

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/reset.hpp"

namespace penstock::pipeline {

using conn::Direction;

void note_answer(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const conn::Found found = burst.found[i];
    if (found.direction != Direction::Reverse || conn::classify(burst.parsed[i].tcp_flags) != conn::TcpFlagClass::SynAck) {
        return;
    }
    const packet::SegmentNumbers said = packet::numbers_behind(burst.data[i], burst.parsed[i]);
    ctx.connections.set_tag(found.index, Direction::Reverse, said.seq);
    ctx.connections.set_tag(found.index, Direction::Forward, said.ack);
}

bool repeats_answer(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const conn::Entry& entry = ctx.connections.at(burst.found[i].index);
    const packet::SegmentNumbers said = packet::numbers_behind(burst.data[i], burst.parsed[i]);
    return said ==
           packet::SegmentNumbers{entry.tags[static_cast<size_t>(Direction::Reverse)], entry.tags[static_cast<size_t>(Direction::Forward)]};
}

}  // namespace penstock::pipeline
