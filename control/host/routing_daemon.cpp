// SPDX-License-Identifier: Apache-2.0
#include "control/host/routing_daemon.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (!(line = trimmed(line)).empty()) {
        const size_t end = std::min(line.find_first_of(kBlanks), line.size());
        words.push_back(line.substr(0, end));
        line.remove_prefix(end);
    }
    return words;
}

// Words, and the characters { } ; = each as a token of its own, without comments and strings.
std::vector<std::string> bird_tokens(std::string_view text) {
    constexpr std::string_view kSingle = "{};=";
    std::vector<std::string> tokens;
    std::string word;
    const auto end_word = [&] {
        if (!word.empty()) {
            tokens.push_back(std::move(word));
            word.clear();
        }
    };
    for (size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '#') {
            at = std::min(text.find('\n', at), text.size());
            end_word();
        } else if (text.substr(at).starts_with("/*")) {
            at = std::min(text.find("*/", at + 2), text.size() - 1) + 1;
            end_word();
        } else if (c == '"') {
            at = std::min(text.find('"', at + 1), text.size());
            end_word();
        } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
            end_word();
        } else if (kSingle.find(c) != std::string_view::npos) {
            end_word();
            tokens.emplace_back(1, c);
        } else {
            word += c;
        }
    }
    end_word();
    return tokens;
}

using Tokens = std::vector<std::string>::const_iterator;

// Whether the word at `at` switches a statement off: `learn no`.
bool is_off(Tokens at, Tokens end) {
    return at != end && (*at == "no" || *at == "off");
}

// Whether the import of a kernel protocol may accept routes of protocol 80. `at` is the word after `import`.
bool accepts_protocol_80(Tokens at, Tokens end) {
    if (at != end && *at == "none") {
        return false;
    }
    const auto stop = std::find(at, end, ";");
    for (auto source = std::find(at, stop, "krt_source"); source != stop;
         source = std::find(source + 1, stop, "krt_source")) {
        if (stop - source > 2 && source[1] == "=" && source[2] != "80") {
            return false;
        }
    }
    return true;
}

}  // namespace

FrrConfig parse_frr(std::string_view text) {
    FrrConfig config;
    bool in_router = false;
    for (const std::string_view line : split(text, '\n')) {
        const auto words = words_of(line);
        if (words.empty() || words[0].starts_with('!') || words[0].starts_with('#')) {
            continue;
        }
        if (words[0] == "router") {
            in_router = true;
            if (words.size() > 2 && words[1] == "bgp") {
                config.bgp_as = words[2];
            }
        } else if (words[0] == "exit" || words[0] == "interface" || words[0] == "route-map") {
            in_router = false;
        } else if (in_router && words.size() > 1 && words[0] == "redistribute" && words[1] == "kernel") {
            config.redistributes = true;
        }
    }
    return config;
}

BirdConfig parse_bird(std::string_view text) {
    BirdConfig config;
    const auto tokens = bird_tokens(text);
    for (auto at = tokens.begin(); at != tokens.end(); ++at) {
        config.includes |= *at == "include";
        if (*at != "protocol" || at + 1 == tokens.end() || *(at + 1) != "kernel") {
            continue;
        }
        config.has_kernel = true;
        const auto open = std::find(at, tokens.end(), "{");
        size_t depth = 0;
        bool learns = false, imports = true;  // BIRD's defaults of this protocol
        auto token = open;
        for (; token != tokens.end(); ++token) {
            depth += *token == "{" ? 1 : 0;
            if (*token == "}" && --depth == 0) {
                break;
            }
            if (*token == "learn") {
                learns = !is_off(token + 1, tokens.end());
            } else if (*token == "import" && token + 1 != tokens.end()) {
                imports = accepts_protocol_80(token + 1, tokens.end());
            }
        }
        config.learns |= learns;
        config.imports |= learns && imports;
        if (token == tokens.end()) {
            break;
        }
        at = token;
    }
    return config;
}

}  // namespace penstock::host
