// SPDX-License-Identifier: Apache-2.0
// Any bytes as a filter program and a frame. A program is accepted only if libpcap accepts it, too; an
// accepted program terminates, reads only the frame, and gives the result of libpcap's interpreter.
#include <pcap/pcap.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/capture/program.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    if (size < 1) {
        return 0;
    }
    const size_t count = std::min<size_t>(data[0], (size - 1) / sizeof(bpf_insn));
    std::vector<bpf_insn> raw(count);
    if (count > 0) {
        std::memcpy(raw.data(), data + 1, count * sizeof(bpf_insn));
    }
    std::vector<capture::Instruction> instructions;
    for (const bpf_insn& each : raw) {
        instructions.push_back({each.code, each.jt, each.jf, each.k});
    }
    // A copy of its own size, so that a sanitizer sees a read behind its end.
    const std::vector<uint8_t> frame(data + 1 + count * sizeof(bpf_insn), data + size);
    const auto length = static_cast<uint32_t>(frame.size());
    const auto program = capture::Program::make(instructions);
    if (!program) {
        PENSTOCK_CHECK(program.error().what.starts_with("instruction "));
        return 0;
    }
    if (instructions.empty()) {
        PENSTOCK_CHECK(program->matches(frame.data(), length));
        return 0;
    }
    PENSTOCK_CHECK(bpf_validate(raw.data(), static_cast<int>(count)) != 0);
    const bool matches = program->matches(frame.data(), length);
    // libpcap leaves its memory words undefined until they are written.
    const bool loads_memory = std::ranges::any_of(
        instructions, [](const auto& each) { return each.code == 0x60 || each.code == 0x61; });
    PENSTOCK_CHECK(loads_memory || matches == (bpf_filter(raw.data(), frame.data(), length, length) != 0));
    return 0;
}
