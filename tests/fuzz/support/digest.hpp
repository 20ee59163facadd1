// What an execution has done, as one number: by it the replay shows that an execution does not depend on those before it, without which a
// fuzzer's findings could not be repeated. A target that keeps anything between its inputs adds to it.
#pragma once

#include <cstdint>
#include <span>

namespace penstock::fuzz {

struct Digest {
    bool is_wanted = false;  // by the replay; a fuzzer has better things to do
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
