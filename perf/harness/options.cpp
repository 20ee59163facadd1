// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "perf/harness/memory.hpp"
#include "perf/harness/report.hpp"

namespace penstock::perf {
namespace {

[[noreturn]] void refuse(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(2);
}

// "1k" is 1,000, "10M" 10,000,000.
std::vector<uint32_t> read_sizes(const std::string& text) {
    std::vector<uint32_t> sizes;
    for (size_t start = 0; start < text.size();) {
        const size_t comma = std::min(text.find(',', start), text.size());
        const std::string word = text.substr(start, comma - start);
        char* end = nullptr;
        const unsigned long number = std::strtoul(word.c_str(), &end, 10);
        const std::string unit = end;
        const unsigned long factor = unit == "k" ? 1'000 : unit == "M" ? 1'000'000 : 1;
        if (number == 0 || number * factor > 100'000'000 || (!unit.empty() && factor == 1)) {
            refuse("not a size: " + word);
        }
        sizes.push_back(static_cast<uint32_t>(number * factor));
        start = comma + 1;
    }
    return sizes;
}

}  // namespace

bool Options::has(std::string_view flag) const noexcept {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

Options read_options(int argc, char** argv, std::span<const uint32_t> usual,
                     std::span<const uint32_t> quick_sizes, std::span<const std::string_view> own_flags) {
    Options options;
    const std::span<char*> arguments(argv + 1, static_cast<size_t>(argc - 1));
    for (size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view word = arguments[i];
        const auto value = [&]() -> std::string {
            if (i + 1 == arguments.size()) {
                refuse(std::string(word) + " takes a value");
            }
            return arguments[++i];
        };
        if (word == "--quick") {
            options.quick = true;
        } else if (word == "--sizes") {
            options.sizes = read_sizes(value());
        } else if (word == "--windows") {
            options.plan.windows = static_cast<uint32_t>(std::max(1, std::atoi(value().c_str())));
        } else if (std::find(own_flags.begin(), own_flags.end(), word) != own_flags.end()) {
            options.flags.push_back(word);
        } else {
            refuse("unknown option " + std::string(word));
        }
    }
    if (options.sizes.empty()) {
        const auto& list = options.quick ? quick_sizes : usual;
        options.sizes.assign(list.begin(), list.end());
    }
    if (options.quick) {
        options.plan.window_ms = 20;
    }
    return options;
}

bool fits_memory(std::string_view what, uint32_t size, size_t bytes) {
    // A tenth stays free for the rest of the machine.
    if (bytes <= available_bytes() / 10 * 9) {
        return true;
    }
    print_remark(std::string(what) + " at " + short_count(size) + " skipped: it needs " +
                 std::to_string(bytes >> 20) + " MiB and the machine has " +
                 std::to_string(available_bytes() >> 20));
    return false;
}

}  // namespace penstock::perf
