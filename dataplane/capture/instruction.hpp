// SPDX-License-Identifier: Apache-2.0
// An instruction of classic BPF, as libpcap compiles it from its filter language.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::capture {

// The layout and the numbers are those of struct bpf_insn (pcap/bpf.h).
struct Instruction {
    uint16_t code = 0;
    uint8_t jump_true = 0;
    uint8_t jump_false = 0;
    uint32_t k = 0;
    bool operator==(const Instruction&) const = default;
};

// Limits the work for one packet to about 3 us. A filter with 200 addresses has 500 instructions.
inline constexpr size_t kInstructionsMax = 1'024;

}  // namespace penstock::capture
