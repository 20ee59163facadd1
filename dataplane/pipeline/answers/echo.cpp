// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/answers/echo.hpp"

#include "dataplane/packet/answers/echo.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/opening/reverse_path.hpp"

namespace penstock::pipeline {
namespace {

void answer_echo(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const std::span<uint8_t> frame(burst.data[i], burst.length[i]);
    // In the same order as for rejects (reject.cpp).
    if (!ctx.echoes.has_token(ctx.now)) {
        return burst.drop(i, DropReason::RejectLimited);
    }
    if (!has_way_to(*ctx.snapshot->routes, parsed.key.source)) {
        return burst.drop(i, DropReason::NoRoute);
    }
    if (!packet::has_valid_icmp_checksum(frame, parsed)) {
        return burst.drop(i, DropReason::BadIcmp);
    }
    const IpAddr client = parsed.key.source;
    burst.length[i] = packet::make_echo_reply(frame, parsed);
    burst.answers[i] = true;
    forward_one(ctx, burst, i, client,
                static_cast<uint16_t>(burst.length[i] - sizeof(packet::EthernetHeader)));
    if (burst.verdict[i] != Verdict::Drop) {
        ctx.echoes.take(ctx.now);
        ctx.count()[stats::Counter::EchoReplies].add(1);
    }
}

}  // namespace

void serve_echo(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const config::Snapshot& snapshot = *ctx.snapshot;
    const packet::Parsed& parsed = burst.parsed[i];
    const bool from_host = burst.arrival[i].note.from_host;
    const bool is_hosts_own = snapshot.routes->is_host_address(parsed.key.source);
    if (snapshot.routes->is_local(parsed.key.destination) ||
        !snapshot.services->is_vip(parsed.key.destination) || (from_host && !is_hosts_own)) {
        return from_host ? burst.relay(i) : void(burst.verdict[i] = Verdict::Punt);
    }
    if (!snapshot.packets.answers_vip_echo) {
        return burst.drop(i, DropReason::VipEcho);
    }
    // The answer would go to the host, which sent no request, or loop back to the gateway.
    if (!from_host && (is_hosts_own || snapshot.snat->addresses.contains(parsed.key.source))) {
        return burst.drop(i, DropReason::MartianSource);
    }
    // Otherwise a spoofed request would make the gateway send its answer to an inside host. A link-local
    // source has no route, and its request comes from its own link.
    const bool is_on_link = !parsed.key.source.is_v4() && parsed.key.source.is_link_local();
    if (!from_host && !is_on_link &&
        source_path(snapshot, parsed.key.source, burst.arrival[i].port) != SourcePath::Ok) {
        return burst.drop(i, DropReason::ReversePath);
    }
    switch (snapshot.services->echo(parsed.key.destination, parsed.key.source)) {
        case lb::ServiceTable::Echo::Answer:
            break;
        case lb::ServiceTable::Echo::Withdrawn:
            return burst.drop(i, DropReason::NoLocalEndpoint);
        case lb::ServiceTable::Echo::NotAllowed:
            if (!from_host) {
                return burst.drop(i, DropReason::SourceNotAllowed);
            }
            break;
    }
    if (!from_host && snapshot.routes->is_present_vip(parsed.key.destination)) {
        burst.verdict[i] = Verdict::Punt;
        return;
    }
    // The same address may exist on each link, and no route selects the right one (RFC 4291, 2.5.6).
    if (is_on_link) {
        return burst.drop(i, DropReason::MartianSource);
    }
    answer_echo(ctx, burst, i);
}

}  // namespace penstock::pipeline
