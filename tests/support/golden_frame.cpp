// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_frame.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dataplane/base/check.hpp"

namespace penstock::test {
namespace {

void read_endpoint(std::istream& from, IpAddr& address, L4Port& port) {
    std::string text;
    from >> text;
    const size_t colon = text.rfind(':');
    PENSTOCK_CHECK(colon != std::string::npos);
    const auto parsed = IpAddr::parse(text.substr(0, colon));
    PENSTOCK_CHECK(parsed.has_value());
    address = *parsed;
    port = static_cast<L4Port>(std::stoul(text.substr(colon + 1)));
}

MacAddr read_mac(std::istream& from) {
    std::string text;
    from >> text;
    const auto mac = MacAddr::parse(text);
    PENSTOCK_CHECK(mac.has_value());
    return *mac;
}

void append_hex(std::vector<uint8_t>& to, const std::string& line) {
    std::istringstream pairs(line);
    std::string pair;
    while (pairs >> pair) {
        PENSTOCK_CHECK(pair.size() == 2);
        to.push_back(static_cast<uint8_t>(std::stoul(pair, nullptr, 16)));
    }
}

GoldenFrame load_one(const std::filesystem::path& path) {
    GoldenFrame frame;
    frame.name = path.stem();
    std::ifstream file(path);
    std::vector<uint8_t>* section = nullptr;
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with("# ")) {
            frame.meaning = line.substr(2);
        } else if (line == "in") {
            section = &frame.in;
        } else if (line == "out") {
            section = &frame.out;
        } else if (line == "reject") {
            frame.operation = GoldenFrame::Operation::Reject;
        } else if (line.starts_with("answer ")) {
            std::istringstream words(line.substr(7));
            frame.operation = GoldenFrame::Operation::Answer;
            frame.source_mac = read_mac(words);
        } else if (line.starts_with("rewrite ")) {
            std::istringstream words(line.substr(8));
            read_endpoint(words, frame.rewrite.source, frame.rewrite.source_port);
            read_endpoint(words, frame.rewrite.destination, frame.rewrite.destination_port);
            frame.source_mac = read_mac(words);
            frame.destination_mac = read_mac(words);
        } else {
            PENSTOCK_CHECK(section != nullptr);
            append_hex(*section, line);
        }
    }
    PENSTOCK_CHECK(!frame.in.empty() && !frame.out.empty());
    return frame;
}

}  // namespace

std::vector<GoldenFrame> load_golden_frames(const std::string& folder) {
    std::vector<GoldenFrame> frames;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".txt") {
            frames.push_back(load_one(entry.path()));
        }
    }
    PENSTOCK_CHECK(!frames.empty());
    std::ranges::sort(frames, {}, &GoldenFrame::name);
    return frames;
}

}  // namespace penstock::test
