// How a program's bytes become packets: most of them well-formed and about something that the gateway knows, some of them spoiled in one
// place or another. A program that ends in the middle of a packet goes on with zeros.
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
    // 0 .. bound-1, by one byte; at most 256.
    uint32_t below(uint32_t bound) { return byte() % bound; }
    // Rare by chance, and easily found by a fuzzer: a zero, with which a program that has ended goes on, says no.
    bool one_in(uint32_t bound) { return byte() % bound == 1; }
    template <typename Range>
    decltype(auto) one_of(const Range& range) {
        return range[below(static_cast<uint32_t>(std::size(range)))];
    }
    // As many of the program's own bytes as it says, `most` at most.
    Frame bytes(size_t most);

 private:
    ByteView left_;
};

// A packet that the gateway sent, which others may follow: its reply, more of the same, errors about it.
struct Passed {
    Arrived arrived;
    Frame left;
    NicPortId egress;
    bool to_host = false;
};

// From anybody to anybody, of any kind.
[[nodiscard]] Arrived fresh_packet(Choices& choices);
// One more of the flow that `before` came by.
[[nodiscard]] Arrived next_packet(Choices& choices, const Passed& before);
// What the receiver of `before` sends back.
[[nodiscard]] Arrived reply_to(Choices& choices, const Passed& before);
// An ICMP error about `before`, from its receiver or from somebody on the way.
[[nodiscard]] Arrived error_about(Choices& choices, const Passed& before);
// `whole` in fragments, as they arrive: any order, some twice, some never, some of them overlapping.
[[nodiscard]] std::vector<Arrived> fragments_of(Choices& choices, const Arrived& whole);
// Any bytes in a frame for the gateway.
[[nodiscard]] Arrived raw_frame(Choices& choices);
// Mostly not at all; otherwise in one place, with the checksums right again or not.
void spoil(Choices& choices, Arrived& arrived);

}  // namespace penstock::fuzz
