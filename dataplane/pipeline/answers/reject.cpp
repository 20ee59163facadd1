// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/answers/reject.hpp"

#include <span>

#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/forward.hpp"

namespace penstock::pipeline {

void reject(WorkerContext& ctx, Burst& burst, uint32_t i, const lb::FrontendRow* frontend) noexcept {
    // Cheap checks first, the checksums of a flood last. The token is taken only for answers that leave: a
    // packet that cannot be answered takes none.
    if (!ctx.rejects.has_token(ctx.now)) {
        return drop_counted(ctx, burst, i, frontend, DropReason::RejectLimited);
    }
    const IpAddr client = burst.parsed[i].key.source;
    if (!has_way_to(*ctx.snapshot->routes, client)) {
        return drop_counted(ctx, burst, i, frontend, DropReason::NoRoute);
    }
    const auto answer = packet::make_reject(
        std::span(burst.data[i], burst.capacity[i]), burst.length[i], burst.parsed[i],
        ctx.snapshot->packets.aborts_sctp ? packet::SctpRefusal::Abort : packet::SctpRefusal::Icmp);
    if (!answer) {
        return drop_counted(ctx, burst, i, frontend, answer.error());
    }
    burst.length[i] = *answer;
    burst.answers[i] = true;
    forward_one(ctx, burst, i, client, static_cast<uint16_t>(*answer - sizeof(packet::EthernetHeader)));
    if (burst.verdict[i] == Verdict::Drop) {  // no route back, or the answer exceeds its MTU
        return drop_counted(ctx, burst, i, frontend, burst.reason[i]);
    }
    ctx.rejects.take(ctx.now);
    if (frontend != nullptr) {
        ctx.counters.services[frontend->service->id.value].rejected.add(1);
    }
    ctx.count()[stats::Counter::Rejected].add(1);
}

}  // namespace penstock::pipeline
