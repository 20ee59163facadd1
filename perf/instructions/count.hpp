// SPDX-License-Identifier: Apache-2.0
// Counts instructions between two points, under `valgrind --tool=callgrind --collect-atstart=no`. Outside
// valgrind the code runs in the same way and nothing is counted.
//
// A result is "instructions of one measured region / operations in it". The caller may divide the region into
// any number of pieces, to exclude the preparation of a burst. report() ends the region and writes it to
// callgrind's next file under the region's name (read by report.py).
#pragma once

#include <valgrind/callgrind.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace penstock::perf {

class InstructionCount {
 public:
    explicit InstructionCount(std::string region) : region_(std::move(region)) { CALLGRIND_ZERO_STATS; }
    InstructionCount(const InstructionCount&) = delete;
    InstructionCount& operator=(const InstructionCount&) = delete;

    template <typename Work>
    __attribute__((always_inline)) void run(Work&& work) {
        CALLGRIND_TOGGLE_COLLECT;
        work();
        CALLGRIND_TOGGLE_COLLECT;
    }
    // `operations`: the divisor of the instruction count. `unit`: the name of one operation: "packet",
    // "call".
    void report(uint64_t operations, const char* unit) const {
        const std::string trigger = region_ + " " + std::to_string(operations) + " " + unit;
        CALLGRIND_DUMP_STATS_AT(trigger.c_str());
    }

 private:
    std::string region_;
};

// Prevents the compiler from removing a computation whose result is unused.
template <typename T>
__attribute__((always_inline)) inline void keep(const T& value) {
    asm volatile("" : : "m"(value) : "memory");
}

}  // namespace penstock::perf
