// SPDX-License-Identifier: Apache-2.0
#include "control/cli/capture_filter.hpp"

#include <pcap/pcap.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

namespace penstock::cli {
namespace {

using Instructions = std::vector<capture::Instruction>;

enum class Optimize : bool { No, Yes };

// An error has libpcap's message. The optimizer refuses filters that match nothing.
Result<Instructions> compile(const std::string& text, Optimize optimize) {
    constexpr int kSnapMax = 65'535;
    const std::unique_ptr<pcap_t, decltype(&pcap_close)> frames(pcap_open_dead(DLT_EN10MB, kSnapMax),
                                                                &pcap_close);
    bpf_program program{};
    if (pcap_compile(frames.get(), &program, text.c_str(), optimize == Optimize::Yes, PCAP_NETMASK_UNKNOWN) !=
        0) {
        return fail(Errc::InvalidArgument, pcap_geterr(frames.get()));
    }
    Instructions instructions;
    for (const bpf_insn& each : std::span(program.bf_insns, program.bf_len)) {
        instructions.push_back({each.code, each.jt, each.jf, each.k});
    }
    pcap_freecode(&program);
    return instructions;
}

// Places at which a word ends, a parenthesis being a word.
std::vector<size_t> ends_of_words(std::string_view text) {
    std::vector<size_t> ends;
    for (size_t at = 1; at <= text.size(); ++at) {
        const auto is_separator = [&](size_t place) {
            return place >= text.size() || std::string_view(" \t\n()").contains(text[place]);
        };
        const bool is_blank = std::string_view(" \t\n").contains(text[at - 1]);
        if (!is_blank && (is_separator(at) || is_separator(at - 1))) {
            ends.push_back(at);
        }
    }
    return ends;
}

// The parentheses that `text` leaves open.
std::string closing(std::string_view text) {
    const auto open = std::ranges::count(text, '(') - std::ranges::count(text, ')');
    return std::string(static_cast<size_t>(std::max<ptrdiff_t>(open, 0)), ')');
}

// libpcap names no place. It is behind the longest beginning that is a filter, and behind the words that
// join it to the rest.
size_t place_of_error(const std::string& text) {
    const std::vector<size_t> ends = ends_of_words(text);
    size_t place = 0;
    for (size_t i = ends.size() > 0 ? ends.size() - 1 : 0; i-- > 0;) {
        const std::string beginning = text.substr(0, ends[i]);
        if (compile(beginning + closing(beginning), Optimize::No)) {
            place = ends[i];
            break;
        }
    }
    const auto skip_blanks = [&] { place = std::min(text.find_first_not_of(" \t\n", place), text.size()); };
    skip_blanks();
    for (const std::string_view word : {"and", "or", "&&", "||"}) {
        if (place > 0 && std::string_view(text).substr(place).starts_with(word)) {
            place += word.size();
            skip_blanks();
            break;
        }
    }
    return place;
}

}  // namespace

Result<Instructions> compile_filter(const std::string& text) {
    if (text.find_first_not_of(" \t\n") == std::string::npos) {
        return Instructions();
    }
    auto compiled = compile(text, Optimize::Yes);
    if (compiled) {
        return compiled;
    }
    const size_t place = place_of_error(text);
    return fail(Errc::InvalidArgument, "filter, column " + std::to_string(place + 1) + ": " +
                                           compiled.error().what + "\n  " + text + "\n  " +
                                           std::string(place, ' ') + "^");
}

}  // namespace penstock::cli
