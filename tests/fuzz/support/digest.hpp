// SPDX-License-Identifier: Apache-2.0
// The behaviour of an execution as one number. With it the replay checks that an execution does not depend on
// those before it; otherwise a fuzzer's findings could not be reproduced. A target that keeps state between
// its inputs adds to it.
#pragma once

#include <cstdint>
#include <span>

namespace penstock::fuzz {

struct Digest {
    bool is_wanted = false;  // set by the replay; a fuzzer does not need it
    uint64_t value = 0;      // 0: nothing was added
    // FNV-1a.
    void add(uint64_t number) {
        value = ((value == 0 ? 0xcbf2'9ce4'8422'2325U : value) ^ number) * 0x100'0000'01b3U;
    }
    void add(std::span<const uint8_t> bytes) {
        add(bytes.size());
        for (const uint8_t byte : bytes) {
            add(byte);
        }
    }
};
inline Digest digest;

}  // namespace penstock::fuzz
