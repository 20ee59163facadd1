// SPDX-License-Identifier: Apache-2.0
#include "control/options/option_set.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "control/options/ini_lines.hpp"

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

Result<std::vector<std::string>> OptionSet::read_words(const std::vector<std::string>& arguments) try {
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto all = described(groups_, true);
    const auto parsed =
        po::command_line_parser(with_joined_switches(arguments)).options(all).style(kStyle).run();
    std::vector<std::string> words;
    for (const auto& option : parsed.options) {
        if (option.string_key.empty()) {
            words.insert(words.end(), option.value.begin(), option.value.end());
        } else {
            PENSTOCK_TRY_STATUS(take(option.string_key, option.value, true));
        }
    }
    return words;
} catch (const po::error& error) {
    return invalid(error.what());
}

Status OptionSet::parse_ini(const std::string& text) try {
    std::istringstream stream(text);
    const auto all = described(groups_, false);
    for (const auto& option : po::parse_config_file(stream, all).options) {
        PENSTOCK_TRY_STATUS(take(option.string_key, option.value, false));
    }
    return {};
} catch (const po::error& error) {
    return invalid(error.what());
}

Status OptionSet::store() const {
    for (const Group& group : groups_) {
        for (const Option& option : group.options) {
            const Value& value = option.value;
            const auto given = given_.find(option.name);
            Status stored;
            if (given != given_.end()) {
                stored = value.store(given->second.texts);
            } else if (!value.environment.empty()) {
                if (stored = value.store({value.environment}); !stored) {
                    return in_context("$" + value.variable, std::move(stored).error());
                }
            } else if (!value.fallback.empty()) {
                stored = value.store({value.fallback});
            }
            if (!stored) {
                return in_context("--" + option.name, std::move(stored).error());
            }
        }
    }
    return {};
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
    PENSTOCK_TRY(const auto words, read_words(arguments));
    if (!words.empty()) {
        return invalid("unexpected argument \"" + words.front() + "\"");
    }
    if (is_given("help") || is_given("version")) {
        return is_given("help") ? Action::Help : Action::Version;
    }
    const auto config = given_.find("config");
    const std::string file = config == given_.end() ? "" : config->second.texts.front();
    std::string ini;
    if (config != given_.end()) {
        std::ifstream stream(file);
        if (!stream) {
            return fail(Errc::NotFound, "--config: \"" + file + "\" cannot be read");
        }
        ini.assign(std::istreambuf_iterator<char>(stream), {});
    }
    if (Status done = read_ini(ini, check); !done) {
        return std::unexpected(at_line(std::move(done).error(), file, ini));
    }
    return is_given("check-config") ? Action::Check : Action::Run;
}

Status OptionSet::read_ini(const std::string& text, const std::function<Status()>& check) {
    PENSTOCK_TRY_STATUS(parse_ini(text));
    PENSTOCK_TRY_STATUS(store());
    return check();
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
