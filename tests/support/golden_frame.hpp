// SPDX-License-Identifier: Apache-2.0
// Reads the golden frames of tests/golden/frames: an input frame, one line that describes the processing, and
// the expected output frame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/rewrite.hpp"

namespace penstock::test {

struct GoldenFrame {
    std::string name;     // file name without extension
    std::string meaning;  // first line of the file
    std::vector<uint8_t> in;
    std::vector<uint8_t> out;
    enum class Operation : uint8_t {
        Rewrite,  // `rewrite` and the Ethernet addresses are applied
        Reject,
        Answer,  // of a query on the link, by source_mac
    };
    Operation operation = Operation::Rewrite;
    packet::Rewrite rewrite;
    MacAddr source_mac, destination_mac;
};

// All golden frames of `folder`, by name. Stops the program if a frame cannot be read or there is none.
[[nodiscard]] std::vector<GoldenFrame> load_golden_frames(const std::string& folder);

}  // namespace penstock::test
