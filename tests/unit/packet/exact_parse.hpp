// SPDX-License-Identifier: Apache-2.0
// Parsing in tests: of exactly the bytes of a frame, and of packets that must be dropped.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet::test_kit {

// Parses a copy that is exactly as long as the frame, so that a sanitizer detects a read beyond its end.
inline ParseResult parse_exactly(ByteView frame, Parsed& out, IpChecksum ip_checksum = IpChecksum::Verify) {
    const auto copy = std::make_unique<uint8_t[]>(frame.size());
    std::ranges::copy(frame, copy.get());
    return parse(ByteView(copy.get(), frame.size()), out, ip_checksum);
}

inline void expect_drop(const char* name, const test::PacketBuilder& packet, DropReason reason) {
    Parsed out;
    const ParseResult result = parse_exactly(packet.build(), out);
    ASSERT_FALSE(result.has_value()) << name << ": " << packet.to_scapy();
    EXPECT_EQ(text_of(result.error()).counter, text_of(reason).counter) << name << ": " << packet.to_scapy();
}

}  // namespace penstock::packet::test_kit
