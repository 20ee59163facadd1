// Counts instructions between two points, under `valgrind --tool=callgrind --collect-atstart=no`. Outside valgrind everything runs the same
// and nothing is counted.
//
// A figure is "instructions of one measured region / operations in it". The region is cut into as many pieces as the caller likes, so that
// what prepares a burst is left out; report() ends it and writes it to callgrind's next file under the region's name (report.py reads
// them).
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
    // `operations`: what the instructions are divided by. The unit is what one of them is: "packet", "call".
    void report(uint64_t operations, const char* unit) const {
        const std::string trigger = region_ + " " + std::to_string(operations) + " " + unit;
        CALLGRIND_DUMP_STATS_AT(trigger.c_str());
    }

 private:
    std::string region_;
};

// Keeps the compiler from leaving out what is computed only to be counted.
template <typename T>
__attribute__((always_inline)) inline void keep(const T& value) {
    asm volatile("" : : "m"(value) : "memory");
}

}  // namespace penstock::perf
