// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/answers/link.hpp"

#include "dataplane/packet/answers/link_answer.hpp"
#include "dataplane/packet/link_message.hpp"

namespace penstock::pipeline {
namespace {

using Kind = packet::LinkMessage::Kind;

packet::LinkMessage link_message(const Burst& burst, uint32_t i) noexcept {
    return packet::read_link_message(ByteView(burst.data[i], burst.length[i]), burst.parsed[i]);
}

// There is no limit of answers: an answer costs less than passing the query to Linux does, goes to the host
// that asked, and is hardly longer than the query. A limit would let one host of the link keep the others
// from resolving a VIP.
void answer_query(WorkerContext& ctx, Burst& burst, uint32_t i, const packet::LinkMessage& message) noexcept {
    const NicPortId port = burst.arrival[i].port;
    const auto length = packet::make_link_answer(std::span(burst.data[i], burst.capacity[i]), message,
                                                 ctx.ports[port.value].mac);
    if (!length) {
        return burst.drop(i, length.error());
    }
    burst.length[i] = *length;
    burst.answers[i] = true;
    burst.verdict[i] = Verdict::Transmit;
    burst.egress[i] = port;
    ctx.count()[message.target.is_v4() ? stats::Counter::ArpReplies : stats::Counter::NeighbourAdvertisements]
        .add(1);
}

// Linux ignores a claim to an address that it does not have. As all packets to a VIP, one that was sent to
// the VIP itself is not passed to it.
void note_claim(WorkerContext& ctx, Burst& burst, uint32_t i, const packet::LinkMessage& message) noexcept {
    if (message.sender_mac != ctx.ports[burst.arrival[i].port.value].mac) {
        ctx.count()[stats::Counter::VipConflicts].add(1);
    }
    const bool is_ip = burst.parsed[i].kind == packet::PacketKind::Ip;
    if (is_ip && ctx.snapshot->services->is_vip(burst.parsed[i].key.destination)) {
        return burst.drop(i, DropReason::VipPortClosed);
    }
    burst.verdict[i] = Verdict::Punt;
}

}  // namespace

bool is_about_link_vip(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const config::Snapshot& snapshot = *ctx.snapshot;
    if (snapshot.link_vips == nullptr || burst.arrival[i].note.from_host) {
        return false;
    }
    const packet::LinkMessage message = link_message(burst, i);
    if (message.kind == Kind::None) {
        return false;
    }
    const route::LinkVip* const vip = snapshot.link_vips->find(burst.arrival[i].port, message.target);
    return vip != nullptr && (vip->is_snat || snapshot.services->is_vip(message.target)) &&
           !snapshot.routes->is_local(message.target);
}

void serve_link_message(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::LinkMessage message = link_message(burst, i);
    switch (message.kind) {
        case Kind::Query:
        case Kind::Probe:
            return answer_query(ctx, burst, i, message);
        case Kind::Claim:
            return note_claim(ctx, burst, i, message);
        case Kind::Invalid:
        case Kind::None:
            return burst.drop(i, DropReason::BadLinkMessage);
    }
}

}  // namespace penstock::pipeline
