// Reads the golden frames of tests/golden/frames: a frame, one line that says what is done to it, and the frame that must come out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/rewrite.hpp"

namespace penstock::test {

struct GoldenFrame {
    std::string name;     // the file's, without its ending
    std::string meaning;  // its first line
    std::vector<uint8_t> in;
    std::vector<uint8_t> out;
    bool is_reject = false;  // else `rewrite` and the Ethernet addresses are what is applied
    packet::Rewrite rewrite;
    MacAddr source_mac, destination_mac;
};

// All golden frames of `folder`, by name. Stops the program where one cannot be read or there is none.
[[nodiscard]] std::vector<GoldenFrame> load_golden_frames(const std::string& folder);

}  // namespace penstock::test
