// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/tap.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/packet/parse.hpp"

namespace penstock::pipeline {

using capture::Finding;
using capture::Point;

namespace {

ServiceId service_at(const WorkerContext& ctx, const packet::FlowKey& key) noexcept {
    const lb::FrontendRow* frontend =
        ctx.snapshot->services->find(key.destination, key.destination_port, key.protocol);
    return frontend == nullptr ? ServiceId{} : frontend->service->id;
}

// The connection of packet i, if it has one and that has not ended with this burst.
const conn::Entry* connection_of(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const conn::Found found = burst.found[i];  // cleared by keep() before the stages
    if (!found.is_hit() || !ctx.connections.is_live(found.index.value)) {
        return nullptr;
    }
    const conn::Entry& entry = ctx.connections.at(found.index);
    return entry.key(found.direction) == burst.parsed[i].key ? &entry : nullptr;
}

Finding finding_about(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    Finding finding{.verdict = burst.verdict[i],
                    .reason = burst.verdict[i] == Verdict::Drop ? burst.reason[i] : DropReason{},
                    .worker = ctx.self,
                    .receiver = burst.arrival[i].note.receiver,
                    .from_host = burst.arrival[i].note.from_host};
    if (const conn::Entry* entry = connection_of(ctx, burst, i); entry != nullptr) {
        finding.service = entry->service;
        finding.backend = entry->backend;
        finding.connection = {burst.found[i].index, ctx.connections.generation(burst.found[i].index)};
    }
    return finding;
}

}  // namespace

void Tap::keep(Burst& burst, uint32_t i, bool matches) noexcept {
    Candidate& candidate = candidate_[candidates_];
    candidate = {.packet = static_cast<uint8_t>(i), .matches = matches, .wire_bytes = burst.length[i]};
    packet::Parsed parsed;
    const ByteView frame(burst.data[i], burst.length[i]);
    if (packet::parse(frame, parsed, packet::IpChecksum::KnownGood) &&
        parsed.kind != packet::PacketKind::Other) {
        candidate.has_key = true;
        candidate.is_flow = parsed.kind == packet::PacketKind::Flow;
        candidate.key = parsed.key;
    }
    std::memcpy(copies_.data() + size_t{candidates_} * options_.snap_bytes, burst.data[i],
                std::min<size_t>(options_.snap_bytes, burst.length[i]));
    // A stage that finds a connection writes it here; what is here now is of an earlier burst.
    burst.found[i] = {};
    ++candidates_;
}

bool Tap::is_wanted(ServiceId service) const noexcept {
    return !options_.services || std::ranges::find(*options_.services, service) != options_.services->end();
}

bool Tap::selects(const WorkerContext& ctx, const Burst& burst, const Candidate& candidate,
                  const Finding& finding) const noexcept {
    const uint32_t i = candidate.packet;
    const bool asks_frame = options_.form == TapOptions::Form::Translated ||
                            (options_.form == TapOptions::Form::Either && !candidate.matches);
    if ((asks_frame && !options_.filter.matches(burst.data[i], burst.length[i])) ||
        !is_wanted(finding.service)) {
        return false;
    }
    if (!options_.client) {
        return true;
    }
    if (const conn::Entry* entry = connection_of(ctx, burst, i); entry != nullptr) {
        return entry->key(conn::Direction::Forward).source == *options_.client;
    }
    return candidate.has_key &&
           (candidate.key.source == *options_.client || candidate.key.destination == *options_.client);
}

void Tap::stage(Point point, NicPortId port, const Finding& finding, const uint8_t* frame,
                uint32_t wire_bytes) noexcept {
    if (options_.points.has(point)) {
        ring_.stage(
            {.ticks = ticks_, .wire_bytes = wire_bytes, .point = point, .port = port, .finding = finding},
            frame);
    }
}

// A reader that is too slow gets every second, fourth, ... selected packet, rather than none for a while.
void Tap::adapt_sampling() noexcept {
    if (ring_.is_nearly_full()) {
        sampling_ = std::min(sampling_ * 2, kSamplingMax);
    } else if (ring_.is_nearly_empty()) {
        sampling_ = std::max(sampling_ / 2, 1U);
    }
}

void Tap::select(const WorkerContext& ctx, const Burst& burst) noexcept {
    adapt_sampling();
    for (uint32_t at = 0; at < candidates_; ++at) {
        const Candidate& candidate = candidate_[at];
        const uint32_t i = candidate.packet;
        Finding finding = finding_about(ctx, burst, i);
        if (!finding.service.is_set() && candidate.is_flow) {
            finding.service = service_at(ctx, candidate.key);
        }
        if (!selects(ctx, burst, candidate, finding)) {
            continue;
        }
        if ((turn_++ & (sampling_ - 1)) != 0) {
            ring_.lose(1);
            continue;
        }
        const NicPortId port = burst.arrival[i].port;
        // A packet that goes on to another worker, or waits for a fragment, is recorded when it is decided.
        if (finding.verdict != Verdict::Handoff && finding.verdict != Verdict::Await) {
            stage(finding.from_host ? Point::Host : Point::Rx, port, finding,
                  copies_.data() + size_t{at} * options_.snap_bytes, candidate.wire_bytes);
        }
        if (finding.verdict == Verdict::Punt) {
            stage(Point::Host, port, finding, burst.data[i], burst.length[i]);
        }
        if (finding.verdict == Verdict::Drop) {
            stage(Point::Drop, port, finding, burst.data[i], burst.length[i]);
        } else if (finding.verdict != Verdict::Await) {
            track_[tracked_++] = {burst.handle[i], port, finding};
        }
    }
    ring_.publish();
    cursor_ = 0;
}

void Tap::disposed() noexcept {
    for (uint32_t at = 0; at < tracked_; ++at) {
        if (track_[at].finding.verdict == Verdict::Hold && track_[at].buffer != nullptr &&
            carried_ < carry_.size()) {
            carry_[carried_++] = track_[at];
        }
    }
    tracked_ = 0;
    is_in_burst_ = false;
}

bool Tap::is_of_burst(const rte_mbuf* packet) const noexcept {
    return std::ranges::find(burst_->handle, packet) != burst_->handle.end();
}

bool Tap::selects_frame(const WorkerContext& ctx, ByteView frame, Finding& finding) const noexcept {
    if (!options_.filter.matches(frame.data(), static_cast<uint32_t>(frame.size()))) {
        return false;
    }
    packet::Parsed parsed;
    const bool has_key = packet::parse(frame, parsed, packet::IpChecksum::KnownGood) &&
                         parsed.kind != packet::PacketKind::Other;
    if (has_key && parsed.kind == packet::PacketKind::Flow) {
        finding.service = service_at(ctx, parsed.key);
        if (!finding.service.is_set()) {
            finding.service = service_at(ctx, parsed.key.reversed());  // an answer to a client
        }
    }
    return is_wanted(finding.service) &&
           (!options_.client || (has_key && (parsed.key.source == *options_.client ||
                                             parsed.key.destination == *options_.client)));
}

Tap::Tracked* Tap::whose(const WorkerContext& ctx, const rte_mbuf* packet, ByteView frame) noexcept {
    // Packets leave in the order of the burst, so the search continues where the last one ended.
    for (uint32_t tried = 0; tried < tracked_; ++tried) {
        const uint32_t at = cursor_ + tried < tracked_ ? cursor_ + tried : cursor_ + tried - tracked_;
        if (track_[at].buffer == packet) {
            cursor_ = at;
            return &track_[at];
        }
    }
    if (is_in_burst_) {
        // The fragments of a packet directly follow its buffer, which holds the first one.
        const bool is_behind_split = tracked_ > 0 && track_[cursor_].finding.verdict == Verdict::Split;
        return is_behind_split && !is_of_burst(packet) ? &track_[cursor_] : nullptr;
    }
    for (uint32_t at = 0; at < carried_; ++at) {
        if (carry_[at].buffer == packet) {
            // Kept for dropped(), should the queue be full.
            tracked_ = tracked_ == track_.size() ? 0 : tracked_;
            track_[tracked_] = carry_[at];
            carry_[at] = carry_[--carried_];
            track_[tracked_].finding.verdict = Verdict::Transmit;  // unless dropped() follows
            return &track_[tracked_++];
        }
    }
    loose_ = {packet, {}, {.verdict = Verdict::Transmit, .worker = ctx.self, .receiver = ctx.self}};
    return selects_frame(ctx, frame, loose_.finding) ? &loose_ : nullptr;
}

bool Tap::stage_leaving(const WorkerContext& ctx, NicPortId port, const rte_mbuf* packet,
                        ByteView frame) noexcept {
    const Tracked* const tracked = whose(ctx, packet, frame);
    return tracked != nullptr && ring_.stage({.ticks = ticks_,
                                              .wire_bytes = static_cast<uint32_t>(frame.size()),
                                              .point = Point::Tx,
                                              .port = port,
                                              .finding = tracked->finding},
                                             frame.data());
}

void Tap::sent(uint32_t count) noexcept {
    uint32_t refused = 0;
    while (refused < staged_ && staged_at_[staged_ - 1 - refused] >= count) {
        ++refused;
    }
    ring_.take_back(refused);
    ring_.publish();
    staged_ = 0;
}

void Tap::dropped(const WorkerContext& ctx, const rte_mbuf* packet, ByteView frame,
                  DropReason reason) noexcept {
    Tracked* const tracked = is_in_burst_ && tracked_ == 0 ? nullptr : whose(ctx, packet, frame);
    if (tracked == nullptr) {
        return;
    }
    Finding finding = tracked->finding;
    finding.verdict = Verdict::Drop;
    finding.reason = reason;
    stage(Point::Drop, tracked->port, finding, frame.data(), static_cast<uint32_t>(frame.size()));
    ring_.publish();
    if (tracked->buffer == packet) {
        tracked->buffer = nullptr;  // it is about to be used for another packet
    }
}

}  // namespace penstock::pipeline
