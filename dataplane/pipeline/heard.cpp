#include "dataplane/pipeline/heard.hpp"

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/reset.hpp"

namespace penstock::pipeline {

using conn::Direction;

namespace {
void note(WorkerContext& ctx, ConnectionIndex index, packet::SegmentNumbers said) noexcept {
    ctx.connections.set_tag(index, Direction::Reverse, said.seq);
    ctx.connections.set_tag(index, Direction::Forward, said.ack);
}
}  // namespace

void note_answer(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const conn::Found found = burst.found[i];
    if (found.direction != Direction::Reverse || conn::classify(burst.parsed[i].tcp_flags) != conn::TcpFlagClass::SynAck) {
        return;
    }
    note(ctx, found.index, packet::numbers_behind(burst.data[i], burst.parsed[i]));
}

bool repeats_answer(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const ConnectionIndex index = burst.found[i].index;
    const auto& noted = ctx.connections.at(index).tags;
    const packet::SegmentNumbers said = packet::numbers_behind(burst.data[i], burst.parsed[i]);
    const packet::SegmentNumbers before{noted[static_cast<size_t>(Direction::Reverse)], noted[static_cast<size_t>(Direction::Forward)]};
    if (before == packet::SegmentNumbers{}) {
        note(ctx, index, said);
        return true;
    }
    return said == before;
}

}  // namespace penstock::pipeline
