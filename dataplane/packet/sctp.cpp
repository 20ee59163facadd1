// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/sctp.hpp"

#include <algorithm>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/answer.hpp"

namespace penstock::packet {
namespace {

using Chunk = SctpChunkHeader;

struct Meaning {
    SctpEvent event = SctpEvent::None;
    bool is_alone = false;     // must be the packet's only chunk
    bool may_reflect = false;  // has a T bit
};

Meaning meaning_of(uint8_t type) noexcept {
    switch (type) {
        case Chunk::kInit:
            return {SctpEvent::Init, true, false};
        case Chunk::kInitAck:
            return {SctpEvent::InitAck, true, false};
        case Chunk::kAbort:
            return {SctpEvent::Abort, false, true};
        case Chunk::kShutdown:
            return {SctpEvent::Shutdown, false, false};
        case Chunk::kShutdownAck:
            return {SctpEvent::ShutdownAck, false, false};
        case Chunk::kCookieEcho:
            return {SctpEvent::CookieEcho, false, false};
        case Chunk::kCookieAck:
            return {SctpEvent::CookieAck, false, false};
        case Chunk::kShutdownComplete:
            return {SctpEvent::ShutdownComplete, true, true};
        default:
            return {};
    }
}

// INIT and INIT ACK have further fields. One of them is the initiate tag, which must not be 0.
bool has_sound_fields(ByteView chunk, SctpEvent event) noexcept {
    if (event != SctpEvent::Init && event != SctpEvent::InitAck) {
        return true;
    }
    return chunk.size() >= sizeof(Chunk) + sizeof(SctpInitFields) &&
           load<SctpInitFields>(chunk.data() + sizeof(Chunk)).initiate_tag.raw() != 0;
}

}  // namespace

std::optional<SctpSummary> summarize_sctp(ByteView sctp) noexcept {
    if (sctp.size() < sizeof(SctpHeader) + sizeof(Chunk)) {
        return std::nullopt;
    }
    const bool has_tag = load<SctpHeader>(sctp.data()).verification_tag.raw() != 0;
    SctpSummary summary;
    size_t at = sizeof(SctpHeader);
    for (unsigned chunks = 0; chunks < kSctpChunksMax && sctp.size() - at >= sizeof(Chunk); ++chunks) {
        const auto chunk = load<Chunk>(sctp.data() + at);
        const size_t bytes = chunk.length.host();
        if (bytes < sizeof(Chunk) || bytes > sctp.size() - at) {
            return std::nullopt;
        }
        const size_t next = std::min(at + (bytes + 3) / 4 * 4, sctp.size());
        const Meaning meaning = meaning_of(chunk.type);
        const bool has_company = chunks > 0 || sctp.size() - next >= sizeof(Chunk);
        if ((meaning.is_alone && has_company) || !has_sound_fields(sctp.subspan(at, bytes), meaning.event)) {
            return std::nullopt;
        }
        if (meaning.event > summary.event) {
            summary.event = meaning.event;
            summary.reflects_tag = meaning.may_reflect && (chunk.flags & Chunk::kReflectsTag) != 0;
        }
        if (chunk.type == Chunk::kData || chunk.type == Chunk::kInterleavedData) {
            break;
        }
        at = next;
    }
    return has_tag == (summary.event != SctpEvent::Init) ? std::optional(summary) : std::nullopt;
}

bool has_valid_sctp_checksum(ByteView sctp) noexcept {
    PENSTOCK_ASSERT(sctp.size() >= sizeof(SctpHeader));
    constexpr uint8_t kZero[sizeof(uint32_t)] = {};
    uint32_t state = crc32c_add(kCrc32cBegin, sctp.first(offsetof(SctpHeader, checksum)));
    state = crc32c_add(state, kZero);
    state = crc32c_add(state, sctp.subspan(sizeof(SctpHeader)));
    return crc32c_end(state) == load<SctpHeader>(sctp.data()).checksum;
}

void set_sctp_ports(std::span<uint8_t> sctp, Be16 source, Be16 destination) noexcept {
    uint8_t* const sum_at = sctp.data() + offsetof(SctpHeader, checksum);
    const auto sent = load<uint32_t>(sum_at);
    const bool has_sum = sent != 0 || has_valid_sctp_checksum(sctp);
    const auto before = load<uint32_t>(sctp.data());
    store(sctp.data(), source);
    store(sctp.data() + offsetof(SctpHeader, destination_port), destination);
    if (has_sum) {
        store(sum_at, sctp_checksum_after(sent, before, load<uint32_t>(sctp.data()), sctp.size()));
    }
}

void store_abort(uint8_t* sctp_at, L4Port source, L4Port destination, uint32_t tag, uint8_t flags) noexcept {
    SctpHeader header{.source_port = Be16::from_host(source),
                      .destination_port = Be16::from_host(destination),
                      .verification_tag = Be32::from_host(tag)};
    store(sctp_at, header);
    store(sctp_at + sizeof header,
          Chunk{.type = Chunk::kAbort, .flags = flags, .length = Be16::from_host(sizeof(Chunk))});
    header.checksum = crc32c(ByteView(sctp_at, kAbortBytes));
    store(sctp_at, header);
}

uint16_t build_abort(std::span<uint8_t> frame, const FlowKey& key, uint32_t tag) noexcept {
    const IpFamily family = key.source.family();
    const uint16_t headers = sizeof(EthernetHeader) + answer_header_bytes(family);
    PENSTOCK_ASSERT(frame.size() >= size_t{headers} + kAbortBytes && key.protocol == Protocol::Sctp);
    EthernetHeader ethernet{};
    ethernet.type = Be16::from_host(family == IpFamily::V4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
    store(frame.data(), ethernet);
    store_answer_header(frame.data() + sizeof ethernet, key.source, key.destination,
                        static_cast<uint8_t>(Protocol::Sctp), 0, kAbortBytes);
    store_abort(frame.data() + headers, key.source_port, key.destination_port, tag, 0);
    return headers + kAbortBytes;
}

}  // namespace penstock::packet
