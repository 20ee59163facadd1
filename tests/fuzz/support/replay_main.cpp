// Stands in for libFuzzer where the compiler has none: runs every file of the given corpus folders through the target once. A corpus that
// is empty or cannot be read is a failure, because a replay of nothing would pass for ever.
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// A target that aborts says nothing of its input, so the name is written first, to a stream that loses nothing.
void replay(const std::filesystem::path& path) {
    std::fprintf(stderr, "replay %s\n", path.c_str());
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    // Exactly as long as the input, so that a sanitizer sees the first byte read behind it.
    const auto copy = std::make_unique<uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    LLVMFuzzerTestOneInput(copy.get(), bytes.size());
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
            std::fprintf(stderr, "corpus %s: %s\n", argv[i], error ? error.message().c_str() : "holds no input");
            return 1;
        }
        std::ranges::sort(files);
        std::ranges::for_each(files, replay);
        inputs += files.size();
    }
    std::printf("%zu inputs replayed\n", inputs);
    return inputs == 0 ? 1 : 0;
}
