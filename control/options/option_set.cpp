// SPDX-License-Identifier: Apache-2.0
#include "control/options/option_set.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "control/base/nearest.hpp"
#include "control/options/ini_lines.hpp"
#include "control/options/mistakes.hpp"

namespace penstock::options {
namespace {

namespace po = boost::program_options;

// The Boost default of 80 columns leaves 27 for the description beside the longest option.
constexpr unsigned kColumns = 118;

std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

// The form of a value for Boost, which parses tokens and prints --help. Values stay text.
class Form final : public po::typed_value<std::string> {
 public:
    explicit Form(const Value& value)
        : typed_value(nullptr),
          arity_(value.arity),
          name_(value.placeholder + (value.fallback.empty() ? "" : " (=" + value.fallback + ")")) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] unsigned min_tokens() const override {
        return arity_ == Value::Arity::Flag || arity_ == Value::Arity::Switch ? 0 : 1;
    }
    [[nodiscard]] unsigned max_tokens() const override { return arity_ == Value::Arity::Flag ? 0 : 1; }

 private:
    const Value::Arity arity_;
    const std::string name_;
};

// Removes the argument that an error of Boost is about, and the value behind it, so that the other arguments
// can be read. False if it is not found.
bool remove_culprit(std::vector<std::string>& arguments, const po::error_with_option_name& error) {
    const std::string name = error.get_option_name();
    const auto culprit = std::ranges::find_if(arguments, [&](const std::string& argument) {
        return !name.empty() && (argument == name || argument.starts_with(name + "="));
    });
    if (culprit == arguments.end()) {
        return false;
    }
    const auto next = std::next(culprit);
    const bool has_value = *culprit == name && next != arguments.end() && !next->starts_with('-');
    arguments.erase(culprit, std::next(next, has_value ? 1 : 0));
    return true;
}

// Whether Boost reads a line of an INI file as an option or a section.
bool is_ini_line(std::string_view content) {
    return content.empty() || content.contains('=') || (content.starts_with('[') && content.ends_with(']'));
}

// Whether `text` contains "--NAME", not as a part of a longer name.
bool mentions(std::string_view text, const std::string& name) {
    if (name.empty()) {
        return false;
    }
    const std::string spelled = "--" + name;
    for (size_t at = text.find(spelled); at != std::string_view::npos; at = text.find(spelled, at + 1)) {
        const size_t end = at + spelled.size();
        if (end == text.size() ||
            (text[end] != '-' && std::isalnum(static_cast<unsigned char>(text[end])) == 0)) {
            return true;
        }
    }
    return false;
}

// Boost's list of the groups.
template <typename Groups>
po::options_description described(const Groups& groups, bool with_command_line) {
    po::options_description all;
    for (const auto& group : groups) {
        if (group.is_of_command_line && !with_command_line) {
            continue;
        }
        po::options_description one(group.title, kColumns, kColumns / 2);
        for (const auto& option : group.options) {
            const std::string names =
                option.short_name.empty() ? option.name : option.name + "," + option.short_name;
            one.add_options()(names.c_str(), new Form(option.value), option.description.c_str());
        }
        all.add(one);
    }
    return all;
}

}  // namespace

void OptionSet::group(std::string title) {
    groups_.push_back({.title = std::move(title), .options = {}});
}

void OptionSet::add(std::string name, Value value, std::string description) {
    const size_t comma = name.find(',');
    std::string short_name = comma == std::string::npos ? "" : name.substr(comma + 1);
    name.resize(std::min(comma, name.size()));
    groups_.back().options.push_back(
        {std::move(name), std::move(short_name), std::move(value), std::move(description)});
}

void OptionSet::add_daemon_group() {
    group("General");
    groups_.back().is_of_command_line = true;
    add("help,h", flag(), "Print this help and exit");
    add("version", flag(), "Print the version and exit");
    add("config", text(config_, "FILE"), "INI file with the options below, without the leading dashes");
    add("check-config", flag(),
        "Check the options, and the files and machine resources that they need, without touching devices or "
        "the network. Exit code 0, or 2 with one line for each error");
}

const OptionSet::Option* OptionSet::find(std::string_view name) const {
    for (const Group& group : groups_) {
        const auto found = std::ranges::find(group.options, name, &Option::name);
        if (found != group.options.end()) {
            return &*found;
        }
    }
    return nullptr;
}

Error OptionSet::unrecognised(std::string_view dashes, std::string_view name, bool in_file) const {
    std::string what = "unrecognised option '" + std::string(dashes) + std::string(name) + "'";
    if (in_file && find(name) != nullptr) {
        return {Errc::InvalidArgument, what + ": it is an option of the command line only"};
    }
    std::vector<std::string_view> names;
    for (const Group& group : groups_) {
        for (const Option& option : group.options) {
            if (!in_file || !group.is_of_command_line) {
                names.push_back(option.name);
            }
        }
    }
    const std::string_view nearest = nearest_of(name, names);
    return {Errc::InvalidArgument,
            nearest.empty() ? what
                            : what + "; did you mean " + (in_file ? "" : "--") + std::string(nearest) + "?"};
}

// Boost takes the value of a switch only from "--name=value". Only daemons have switches; they have no words,
// so the argument that follows can only be the value.
std::vector<std::string> OptionSet::with_joined_switches(std::vector<std::string> arguments) const {
    std::vector<std::string> joined;
    for (std::string& argument : arguments) {
        const std::string_view last = joined.empty() ? std::string_view() : joined.back();
        const Option* option = last.starts_with("--") ? find(last.substr(2)) : nullptr;
        if (option != nullptr && option->value.arity == Value::Arity::Switch && !argument.starts_with('-')) {
            joined.back() += "=" + argument;
        } else {
            joined.push_back(std::move(argument));
        }
    }
    return joined;
}

Status OptionSet::take(const std::string& name, const std::vector<std::string>& texts,
                       bool is_of_command_line) {
    const Option* option = find(name);
    Given& given = given_.try_emplace(name, Given{{}, is_of_command_line}).first->second;
    if (given.is_of_command_line != is_of_command_line) {
        return {};  // the command line has precedence
    }
    if (option->value.arity != Value::Arity::Many && !given.texts.empty()) {
        return invalid("--" + name + ": is given twice");
    }
    given.texts.insert(given.texts.end(), texts.begin(), texts.end());
    if (texts.empty()) {
        given.texts.emplace_back();  // a flag, or a switch without a value
    }
    return {};
}

std::vector<std::string> OptionSet::read_line(const std::vector<std::string>& arguments, Mistakes& mistakes) {
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto all = described(groups_, true);
    auto left = with_joined_switches(arguments);
    while (true) {
        try {
            std::vector<std::string> words;
            for (const auto& option :
                 po::command_line_parser(left).options(all).style(kStyle).run().options) {
                if (option.string_key.empty()) {
                    words.insert(words.end(), option.value.begin(), option.value.end());
                } else {
                    mistakes.note(take(option.string_key, option.value, true));
                }
            }
            return words;
        } catch (const po::error_with_option_name& error) {
            const std::string spelled = error.get_option_name();
            const size_t dashes = std::min(spelled.find_first_not_of('-'), spelled.size());
            mistakes.note(dynamic_cast<const po::unknown_option*>(&error) == nullptr
                              ? Error{Errc::InvalidArgument, error.what()}
                              : unrecognised(spelled.substr(0, dashes), spelled.substr(dashes), false));
            if (!remove_culprit(left, error)) {
                return {};
            }
        } catch (const po::error& error) {
            mistakes.note({Errc::InvalidArgument, error.what()});
            return {};
        }
    }
}

Result<std::vector<std::string>> OptionSet::read_words(const std::vector<std::string>& arguments) {
    Mistakes mistakes;
    auto words = read_line(arguments, mistakes);
    return mistakes.empty() ? Result<std::vector<std::string>>(std::move(words))
                            : invalid(mistakes.lines().front());
}

void OptionSet::parse_ini(const std::string& text, Mistakes& mistakes) try {
    std::string readable;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        const std::string content(trimmed(line.substr(0, line.find('#'))));
        if (is_ini_line(content)) {
            readable += line;
        } else {
            mistakes.note({Errc::InvalidArgument, "invalid line '" + content + "': must be NAME = VALUE"});
        }
        readable += '\n';
        begin = end + 1;
    }
    std::istringstream stream(readable);
    const auto all = described(groups_, false);
    for (const auto& option : po::parse_config_file(stream, all, true).options) {
        if (option.unregistered) {
            mistakes.note(unrecognised("", option.string_key, true));
        } else {
            mistakes.note(take(option.string_key, option.value, false));
        }
    }
} catch (const po::error& error) {
    mistakes.note({Errc::InvalidArgument, error.what()});
}

Status OptionSet::store() const {
    Mistakes mistakes;
    for (const Group& group : groups_) {
        for (const Option& option : group.options) {
            const Value& value = option.value;
            const auto given = given_.find(option.name);
            Status stored;
            std::string context = "--" + option.name;
            if (given != given_.end()) {
                stored = value.store(given->second.texts);
            } else if (!value.environment.empty()) {
                stored = value.store({value.environment});
                context = "$" + value.variable;
            } else if (!value.fallback.empty()) {
                stored = value.store({value.fallback});
            }
            if (!stored) {
                mistakes.note_in(context, stored.error());
            }
        }
    }
    return mistakes.result();
}

Error OptionSet::at_line(Error error, const std::string& file, const std::string& ini) const {
    const auto given = given_.find(option_in(error.what));
    if (!file.empty() && (given == given_.end() || !given->second.is_of_command_line)) {
        error.what = at_ini_line(file, ini, error.what);
    }
    return error;
}

Result<Action> OptionSet::read(const std::vector<std::string>& arguments,
                               const std::function<Status()>& check) {
    Mistakes mistakes;
    for (const std::string& word : read_line(arguments, mistakes)) {
        mistakes.note({Errc::InvalidArgument, "unexpected argument \"" + word + "\""});
    }
    if (mistakes.empty() && (is_given("help") || is_given("version"))) {
        return is_given("help") ? Action::Help : Action::Version;
    }
    const auto config = given_.find("config");
    const std::string file = config == given_.end() ? "" : config->second.texts.front();
    std::string ini;
    if (config != given_.end()) {
        std::ifstream stream(file);
        if (!stream) {
            mistakes.note({Errc::NotFound, "--config: \"" + file + "\" cannot be read"});
            PENSTOCK_TRY_STATUS(mistakes.result());
        }
        ini.assign(std::istreambuf_iterator<char>(stream), {});
    }
    Mistakes of_values;
    of_values.note(read_ini(ini, check));
    for (const std::string& line : of_values.lines()) {
        mistakes.note(at_line({Errc::InvalidArgument, line}, file, ini));
    }
    PENSTOCK_TRY_STATUS(mistakes.result());
    return is_given("check-config") ? Action::Check : Action::Run;
}

Status OptionSet::read_ini(const std::string& text, const std::function<Status()>& check) {
    Mistakes mistakes, of_values, of_rules;
    parse_ini(text, mistakes);
    of_values.note(store());
    mistakes.note(of_values.result());
    of_rules.note(check());
    // A rule about an option without a valid value would be judged by the default.
    for (const std::string& rule : of_rules.lines()) {
        const bool is_of_broken = std::ranges::any_of(
            of_values.lines(), [&](const std::string& line) { return mentions(rule, option_in(line)); });
        if (!is_of_broken) {
            mistakes.note({Errc::InvalidArgument, rule});
        }
    }
    return mistakes.result();
}

std::vector<std::string> OptionSet::given() const {
    std::vector<std::string> names;
    for (const auto& [name, texts] : given_) {
        names.push_back(name);
    }
    return names;
}

std::string OptionSet::help() const {
    std::ostringstream text;
    for (const Group& group : groups_) {
        text << described(std::span(&group, 1), true);
    }
    return text.str();
}

std::string OptionSet::help(const std::string& title, std::span<const std::string_view> names) const {
    std::vector<Group> chosen{{.title = title, .options = {}}};
    for (const std::string_view name : names) {
        if (const Option* option = find(name)) {
            chosen.front().options.push_back(*option);
        }
    }
    std::ostringstream text;
    text << described(chosen, true);
    return text.str();
}

std::vector<std::string> OptionSet::names_in(std::string_view title) const {
    std::vector<std::string> names;
    for (const Group& group : groups_) {
        for (const Option& option : group.options) {
            if (group.title == title) {
                names.push_back(option.name);
            }
        }
    }
    return names;
}

std::vector<std::string> OptionSet::spellings_with_value() const {
    std::vector<std::string> spellings;
    for (const Group& group : groups_) {
        for (const Option& option : group.options) {
            if (option.value.arity == Value::Arity::Flag) {
                continue;
            }
            spellings.push_back("--" + option.name);
            if (!option.short_name.empty()) {
                spellings.push_back("-" + option.short_name);
            }
        }
    }
    return spellings;
}

}  // namespace penstock::options
