// SPDX-License-Identifier: Apache-2.0
// Any bytes as a BFD control packet, as the frame of one, and as the stream of a bfdd that requests sessions.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "control/bfd/frr_messages.hpp"
#include "control/bfd/session_book.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/bfd/engine.hpp"
#include "dataplane/bfd/frame.hpp"
#include "dataplane/packet/parse.hpp"

namespace {

using namespace penstock;

void read_packet(ByteView bytes) {
    if (const auto packet = bfd::parse(bytes)) {
        const auto wire = bfd::wire_of(*packet);
        PENSTOCK_CHECK(bfd::parse(wire) == packet);
        PENSTOCK_CHECK(packet->detect_multiplier != 0 && packet->my_discriminator != 0);
    }
    packet::Parsed parsed;
    if (!packet::parse(bytes, parsed, packet::IpChecksum::KnownGood)) {
        return;
    }
    if (const auto received = bfd::read_frame(bytes, parsed, NicPortId{0})) {
        PENSTOCK_CHECK(received->origin.source == parsed.key.source);
    }
}

// All sessions are on a gateway with two twins, and their workers run.
void serve_bfdd(ByteView bytes) {
    const std::vector<bfd::Twin> twins{
        {"up0", NicPortId{0}, {{*IpAddr::parse("192.0.2.1"), 24}, {*IpAddr::parse("fe80::1"), 64}}},
        {"down0", NicPortId{1}, {}}};
    stats::WorkerCounters counters;
    const stats::WorkerCounters* row = &counters;
    constexpr TscRate kRate{1'000'000'000};
    const auto engine = std::make_unique<bfd::Engine>(kRate, 1, std::span(&row, 1));
    bfd::SessionBook book;
    bfd::FrrReader reader;
    TscTime now{};
    for (size_t at = 0; at < bytes.size(); at += 97) {
        reader.append(bytes.subspan(at, std::min<size_t>(97, bytes.size() - at)));
        for (;;) {
            const auto message = reader.next();
            if (!message || !*message) {
                break;
            }
            if (const auto* request = std::get_if<bfd::SessionRequest>(&**message)) {
                for (const bfd::Order& order : book.request(*request, twins, {})) {
                    PENSTOCK_CHECK(order.terms.discriminator != 0 &&
                                   order.terms.local.family() == order.terms.peer.family());
                    while (!engine->order(order)) {
                        engine->run(now, [](const bfd::Terms&, const bfd::ControlPacket&) { return true; });
                    }
                }
            }
        }
        now.value += 500'000'000;
        counters[stats::Counter::Polls].add(1);
        engine->run(now, [](const bfd::Terms& terms, const bfd::ControlPacket& packet) {
            std::array<uint8_t, bfd::kFrameBytesMax> frame{};
            const uint16_t length = bfd::build_frame(frame, terms, packet);
            PENSTOCK_CHECK(length <= frame.size() && packet.my_discriminator == terms.discriminator);
            return true;
        });
        while (const auto change = engine->take_change()) {
            book.change(*change, {});
        }
        PENSTOCK_CHECK(book.kept().size() <= limits::kBfdSessionsMax);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const ByteView bytes(data, size);
    read_packet(bytes);
    serve_bfdd(bytes);
    return 0;
}
