// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/pick_up.hpp"

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/nat/masquerade.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/pipeline/answers/reject.hpp"
#include "dataplane/pipeline/handshake.hpp"
#include "dataplane/pipeline/opening/opening.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {

void pick_up(WorkerContext& ctx, Burst& burst, uint32_t i, const Admission& admission) noexcept {
    const packet::FlowKey& forward = burst.parsed[i].key;
    Opening opening{};
    opening.packet = static_cast<uint8_t>(i);
    opening.frontend = admission.frontend;
    opening.service = admission.frontend->service;
    opening.keep_source = true;
    opening.kept_port = forward.source_port;
    lb::AffinityTable::Pin pin{};
    opening.backend =
        opening.service->has_affinity()
            ? choose_pinned(ctx, *opening.service, *admission.set, forward, pin)
            : &admission.set->usable[lb::pick(*opening.service, *admission.set, forward, ctx.schedulers)];
    conn::Inserted inserted{conn::InsertStatus::ReverseTaken, {}};
    if (!nat::must_translate(true, forward.source, opening.backend->address)) {
        const packet::FlowKey reverse = reverse_key(forward, opening);
        const packet::TranslationDeltas deltas = packet::translation_deltas(
            forward, {reverse.destination, reverse.source, reverse.destination_port, reverse.source_port});
        const conn::Connection entry{.forward = forward,
                                     .reverse = reverse,
                                     .last_seen = ctx.now_coarse,
                                     .opened_at = ctx.now_coarse,
                                     .service = opening.service->id,
                                     .backend = opening.backend->id,
                                     .l4_delta = deltas.l4,
                                     .ip_delta = deltas.ip,
                                     .state = static_cast<uint8_t>(conn::TcpState::PickedUp),
                                     .source_kept = true,
                                     .is_pinned = opening.service->has_affinity(),
                                     .tags = tags_of_picked_up(burst, i)};
        if (ctx.copies == nullptr || !is_reserved_by_copy(*ctx.copies, forward, reverse)) {
            inserted = insert_connection(ctx, entry, burst.hash[i], ctx.connections.hash(reverse));
        }
    }
    const bool is_open = inserted.status == conn::InsertStatus::Inserted;
    confirm_or_withdraw(ctx, opening, pin, is_open);
    if (!is_open) {
        return inserted.status == conn::InsertStatus::ReverseTaken
                   ? reject(ctx, burst, i, admission.frontend)
                   : drop_counted(ctx, burst, i, admission.frontend, DropReason::ConnectionTableFull);
    }
    burst.found[i] = {inserted.index, conn::Direction::Forward};
    ctx.by_backend.add(inserted.index, opening.backend->id);
    ctx.counters.backends[opening.backend->id.value].open.add(1);
    count_opened(ctx, burst, opening);
    send_one(ctx, burst, i);
}

}  // namespace penstock::pipeline
