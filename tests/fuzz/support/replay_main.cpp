// SPDX-License-Identifier: Apache-2.0
// Replaces libFuzzer with compilers that have none. It runs every file of the given corpus folders through
// the target once. If the target computes a digest (digest.hpp), it runs them again in the opposite order,
// which must give the same digests. An empty or unreadable corpus is a failure, because a replay without
// inputs would always pass.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/support/digest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// A target that aborts does not print its input, so the name is written first, to an unbuffered stream.
// Returns the target's digest.
uint64_t replay(const std::filesystem::path& path) {
    std::fprintf(stderr, "replay %s\n", path.c_str());
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    // Exactly as long as the input, so that a sanitizer detects a read beyond its end.
    const auto copy = std::make_unique<uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    penstock::fuzz::digest = {.is_wanted = true};
    LLVMFuzzerTestOneInput(copy.get(), bytes.size());
    return penstock::fuzz::digest.value;
}

// False if the result of an input differs from its first run.
bool replay_backwards(const std::vector<std::filesystem::path>& files, const std::vector<uint64_t>& digests) {
    for (size_t i = files.size(); i > 0; --i) {
        if (digests[i - 1] != 0 && replay(files[i - 1]) != digests[i - 1]) {
            std::fprintf(stderr, "%s: its execution depends on those before it\n", files[i - 1].c_str());
            return false;
        }
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    size_t inputs = 0;
    for (int i = 1; i < argc; ++i) {
        std::error_code error;
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
            if (entry.is_regular_file()) {
                files.push_back(entry.path());
            }
        }
        if (error || files.empty()) {
            std::fprintf(stderr, "corpus %s: %s\n", argv[i],
                         error ? error.message().c_str() : "holds no input");
            return 1;
        }
        std::ranges::sort(files);
        std::vector<uint64_t> digests;
        std::ranges::transform(files, std::back_inserter(digests), replay);
        if (!replay_backwards(files, digests)) {
            return 1;
        }
        inputs += files.size();
    }
    std::printf("%zu inputs replayed\n", inputs);
    return inputs == 0 ? 1 : 0;
}
