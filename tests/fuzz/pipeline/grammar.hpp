// SPDX-License-Identifier: Apache-2.0
// Converts a program's bytes into packets. Most of them are well-formed and concern an object of the
// gateway's configuration; some are corrupted in one place. A program that ends in the middle of a packet is
// continued with zeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "tests/fuzz/pipeline/judge.hpp"
#include "tests/fuzz/pipeline/sight.hpp"

namespace penstock::fuzz {

// Reads a program.
class Choices {
 public:
    explicit Choices(ByteView program) : left_(program) {}
    [[nodiscard]] bool are_over() const { return left_.empty(); }
    uint8_t byte();
    uint16_t word();
    // 0 .. bound-1, from one byte; at most 256.
    uint32_t below(uint32_t bound) { return byte() % bound; }
    // Rare by chance, but easy to find for a fuzzer. A zero, with which an ended program is continued, means
    // no.
    bool one_in(uint32_t bound) { return byte() % bound == 1; }
    template <typename Range>
    decltype(auto) one_of(const Range& range) {
        return range[below(static_cast<uint32_t>(std::size(range)))];
    }
    // A number of the program's own bytes; the program contains the number, which is at most `most`.
    Frame bytes(size_t most);

 private:
    ByteView left_;
};

// A packet that the gateway sent, as the basis of later ones: its reply, further packets of the flow, errors
// about it.
struct Passed {
    Arrived arrived;
    Frame left;
    NicPortId egress;
    bool to_host = false;
};

// Any source, any destination, any kind.
[[nodiscard]] Arrived fresh_packet(Choices& choices);
// A further packet of the flow in which `before` arrived.
[[nodiscard]] Arrived next_packet(Choices& choices, const Passed& before);
// The receiver's reply to `before`.
[[nodiscard]] Arrived reply_to(Choices& choices, const Passed& before);
// An ICMP error about `before`, from its receiver or from a router on the path.
[[nodiscard]] Arrived error_about(Choices& choices, const Passed& before);
// The fragments of `whole` as they arrive: in any order, some twice, some missing, some overlapping.
[[nodiscard]] std::vector<Arrived> fragments_of(Choices& choices, const Arrived& whole);
// Any bytes in a frame for the gateway.
[[nodiscard]] Arrived raw_frame(Choices& choices);
// Mostly does nothing; otherwise corrupts one place, with or without correcting the checksums.
void spoil(Choices& choices, Arrived& arrived);

}  // namespace penstock::fuzz
