// SPDX-License-Identifier: Apache-2.0
// Translation and restoration give the original packet: both families, both protocols, wrong checksums
// included.
#include <gtest/gtest.h>

#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/restore.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace restore_test {

using test::eth;
using test::Prng;
using test::same_frame;

TEST(Restore, TakesATranslationBack_ICMP004) {
    Prng prng(7);
    for (unsigned round = 0; round < 2000; ++round) {
        const bool v4 = prng.one_in(2), is_udp = prng.one_in(2);
        const auto port = [&] { return static_cast<uint16_t>(1 + prng.below(65535)); };
        const auto ttl = static_cast<uint8_t>(2 + prng.below(254));
        test::PacketBuilder builder = v4 ? eth().ipv4("192.0.2.1", "198.51.100.2").ttl(ttl)
                                         : eth().ipv6("2001:db8::1", "2001:db8::2").hop_limit(ttl);
        is_udp ? builder.udp(port(), port()) : builder.tcp(port(), port(), "PA").seq(round);
        builder.payload(std::vector<uint8_t>(prng.below(40), prng.byte()));
        if (prng.one_in(4)) {
            builder.l4_checksum(
                static_cast<uint16_t>(v4 && is_udp && prng.one_in(2) ? 0 : 1 + prng.below(0xfffe)));
        }
        const std::vector<uint8_t> sent = builder.build();
        Parsed parsed;
        ASSERT_TRUE(parse(sent, parsed).has_value());
        Rewrite rewrite{.source_port = port(), .destination_port = port()};
        rewrite.source = v4 ? IpAddr::v4(10, 0, prng.byte(), prng.byte()) : *IpAddr::parse("fd00::1");
        rewrite.destination = v4 ? IpAddr::v4(10, 1, prng.byte(), prng.byte()) : *IpAddr::parse("fd00::2");
        std::vector<uint8_t> frame = sent;
        apply(frame, parsed, rewrite);
        ASSERT_NE(frame, sent);
        restore(frame, parsed);
        ASSERT_TRUE(same_frame(frame, sent)) << "round " << round;
    }
}

}  // namespace restore_test
}  // namespace penstock::packet
