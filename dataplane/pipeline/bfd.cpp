// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/bfd.hpp"

#include <rte_mbuf.h>

#include <optional>
#include <span>

#include "dataplane/base/cpu.hpp"
#include "dataplane/bfd/engine.hpp"
#include "dataplane/bfd/frame.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/pipeline/tx.hpp"

namespace penstock::pipeline {
namespace {

// A single-hop session uses its own link, whatever the routes are (RFC 5881, 4).
std::optional<route::NextHop> next_hop_of(const route::RouteTable& routes, const bfd::Terms& terms) noexcept {
    if (terms.is_multihop()) {
        return routes.next_hop(terms.peer);
    }
    return route::NextHop{.egress = terms.egress,
                          .address = terms.peer,
                          .neighbour = routes.neighbour(terms.egress, terms.peer)};
}

bool send(WorkerContext& ctx, WorkerIo& io, const bfd::Terms& terms,
          const bfd::ControlPacket& packet) noexcept {
    const auto hop = next_hop_of(*ctx.snapshot->routes, terms);
    if (!hop || hop->egress.value >= io.ports) {
        return false;
    }
    if (hop->neighbour == nullptr || !hop->neighbour->is_usable()) {
        ctx.resolve->push({hop->egress, hop->address});
        return false;
    }
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(io.own_buffers);
    if (mbuf == nullptr) {
        return false;
    }
    auto* const frame = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(mbuf, bfd::kFrameBytesMax));
    const uint16_t length = bfd::build_frame(std::span(frame, bfd::kFrameBytesMax), terms, packet);
    rte_pktmbuf_trim(mbuf, static_cast<uint16_t>(bfd::kFrameBytesMax - length));
    packet::set_ethernet(std::span(frame, length), ctx.ports[hop->egress.value].mac, hop->neighbour->mac);
    ctx.neighbour_use.note(hop->neighbour->id, ctx.now_s);
    ctx.count()[stats::Counter::BfdSent].add(1);
    send_at_once(ctx, io, hop->egress, mbuf);
    return true;
}

}  // namespace

BfdTake take_bfd(WorkerContext& ctx, ByteView frame, const packet::Parsed& parsed, NicPortId port) noexcept {
    const auto received = bfd::read_frame(frame, parsed, port);
    if (!received || !ctx.bfd->may_be_of_session(received->origin)) {
        return BfdTake::Other;
    }
    if (ctx.self != kBfdWorker) {
        return BfdTake::HandOver;
    }
    if (!ctx.bfd->receive(received->packet, received->origin, ctx.now)) {
        return BfdTake::Other;
    }
    ctx.count()[stats::Counter::BfdReceived].add(1);
    return BfdTake::Taken;
}

void run_bfd(WorkerContext& ctx, WorkerIo& io) noexcept {
    if (!ctx.bfd->is_due(ctx.now)) [[likely]] {
        return;
    }
    ctx.bfd->run(ctx.now, [&](const bfd::Terms& terms, const bfd::ControlPacket& packet) {
        return send(ctx, io, terms, packet);
    });
}

}  // namespace penstock::pipeline
