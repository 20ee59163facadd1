// SPDX-License-Identifier: Apache-2.0
#include "control/cli/completion/words.hpp"

#include <algorithm>
#include <array>

#include "control/annotations/refused.hpp"
#include "control/annotations/table.hpp"
#include "control/cli/commands/list.hpp"
#include "control/cli/option_list.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::cli {
namespace {

constexpr std::array kShells = {"bash", "zsh", "fish"};
constexpr std::array kLogLevels = {"trace", "debug", "info", "warn", "error", "off"};

std::vector<std::string> annotation_keys() {
    std::vector<std::string> keys;
    for (const annotations::SettingSpec& spec : annotations::specs()) {
        keys.emplace_back(spec.spellings.front().key);
    }
    for (const annotations::RefusedKey& refused : annotations::refused_keys()) {
        if (refused.key.starts_with(annotations::kNativePrefix)) {
            keys.emplace_back(refused.key);
        }
    }
    return keys;
}

}  // namespace

std::map<std::string, std::set<std::string>> continuations() {
    std::map<std::string, std::set<std::string>> next;
    for (const Command& command : all_commands()) {
        const auto options = option_names(command);
        next[name_of(command)].insert(options.begin(), options.end());
    }
    for (const NextWord& each : next_words()) {
        next[each.path].insert(each.word);
    }
    return next;
}

std::vector<NextWord> next_words() {
    std::vector<NextWord> next;
    for (const Command& command : all_commands()) {
        std::string path;
        NextWord* last = nullptr;
        for (const std::string_view word : command.words) {
            auto known = std::ranges::find_if(
                next, [&](const NextWord& each) { return each.path == path && each.word == word; });
            if (known == next.end()) {
                known = next.insert(known, {path, std::string(word), ""});
            }
            last = &*known;
            path += (path.empty() ? "" : " ") + std::string(word);
        }
        last->description = command.summary;
    }
    for (const char* shell : kShells) {
        next.push_back({"completion", shell, ""});
    }
    for (const char* level : kLogLevels) {
        next.push_back({"set log-level", level, ""});
    }
    for (std::string& key : annotation_keys()) {
        next.push_back({"explain annotations", std::move(key), ""});
    }
    return next;
}

std::vector<NamedCommand> named_commands() {
    return {{"get services", Names::Services},     {"get backends", Names::Services},
            {"get affinity", Names::Services},     {"get addresses", Names::Services},
            {"describe service", Names::Services}, {"set scheduler", Names::Services},
            {"clear affinity", Names::Services},   {"top", Names::Services},
            {"describe pool", Names::Pools},       {"describe share", Names::Shares}};
}

OptionValues values_of(const options::OptionSet::Option& option) {
    using Kind = OptionValues::Kind;
    const std::string& form = option.value.placeholder;
    if (option.value.arity == options::Value::Arity::Flag) {
        return {Kind::None, {}};
    }
    if (option.name == "context") {
        return {Kind::Context, {}};
    }
    if (option.name == "namespace") {
        return {Kind::Namespace, {}};
    }
    if (option.name == "service") {
        return {Kind::Service, {}};
    }
    if (option.name == "proto") {
        return {Kind::Words, {"tcp", "udp", "sctp"}};
    }
    if (form == "FILE") {
        return {Kind::Files, {}};
    }
    if (form == "TARGET") {
        return {Kind::Target, {}};
    }
    if (form.contains('|')) {
        OptionValues values{Kind::Words, {}};
        for (const std::string_view word : split(form, '|')) {
            values.words.emplace_back(word);
        }
        return values;
    }
    return {};
}

std::string first_sentence(std::string_view text) {
    const size_t end = text.find(". ");
    text = text.substr(0, end);
    if (text.ends_with('.')) {
        text.remove_suffix(1);
    }
    return std::string(text);
}

}  // namespace penstock::cli
