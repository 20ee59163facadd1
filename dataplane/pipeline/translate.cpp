#include "dataplane/pipeline/translate.hpp"

#include "dataplane/packet/rewrite.hpp"

namespace penstock::pipeline {

void translate(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (!burst.under_way(i) || burst.answers[i]) {
            continue;
        }
        // Later packets of this burst may have evicted the connection of an earlier one, when the table was full.
        if (ctx.connections.generation(burst.found[i].index) != burst.generation[i]) [[unlikely]] {
            burst.drop(i, DropReason::ConnectionTableFull);
            continue;
        }
        const conn::Connection& connection = ctx.connections.at(burst.found[i].index);
        // A packet leaves as the answer to the other direction's key: the two keys are the whole translation.
        const packet::FlowKey& other = burst.found[i].direction == conn::Direction::Forward ? connection.reverse : connection.forward;
        packet::apply(std::span(burst.data[i], burst.length[i]), burst.parsed[i],
                      {other.destination, other.source, other.destination_port, other.source_port});
        burst.leaves_to[i] = other.source;
    }
}

}  // namespace penstock::pipeline
