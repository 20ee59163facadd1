// SPDX-License-Identifier: Apache-2.0
#include "control/options/roff.hpp"

#include <vector>

#include "control/options/default_text.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::options {
namespace {

// mandoc reports longer lines.
constexpr size_t kManualColumns = 78;

// A hyphen that is typed must not become a typographic one.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '\\':
                out += "\\e";
                break;
            case '-':
                out += "\\-";
                break;
            case '\'':
                out += "\\(aq";
                break;
            case '`':
                out += "\\(ga";
                break;
            case '^':
                out += "\\(ha";
                break;
            case '~':
                out += "\\(ti";
                break;
            default:
                out += c;
        }
    }
    return out;
}

// At the begin of a line, '.' would be a macro.
std::string guarded(const std::string& line) {
    return line.starts_with('.') ? "\\&" + line : line;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
        const size_t end = text.find_first_of(kBlanks, begin);
        words.push_back(escaped(text.substr(begin, end - begin)));
        begin = end == std::string_view::npos ? end : text.find_first_not_of(kBlanks, end);
    }
    return words;
}

std::string italic(std::string_view text) {
    return "\\fI" + escaped(text) + "\\fR";
}

std::string heading(const OptionSet::Option& option, OptionForm form) {
    const Value& value = option.value;
    std::string text;
    if (form == OptionForm::Ini) {
        return roff_bold(option.name) + " = " + italic(value.placeholder);
    }
    if (!option.short_name.empty()) {
        text += roff_bold("-" + option.short_name) + ", ";
    }
    text += roff_bold("--" + option.name);
    if (value.arity == Value::Arity::Switch) {
        return text + " [" + italic(value.placeholder) + "]";
    }
    return value.arity == Value::Arity::Flag ? text : text + " " + italic(value.placeholder);
}

}  // namespace

std::string roff_bold(std::string_view text) {
    return "\\fB" + escaped(text) + "\\fR";
}

std::string roff_text(std::string_view text) {
    std::string out, line;
    for (const std::string& word : words_of(text)) {
        const bool fits = line.size() + 1 + word.size() <= kManualColumns;
        // A new sentence begins on a line of its own.
        const bool ends_sentence = line.ends_with('.') || line.ends_with("?") || line.ends_with("!");
        if (!line.empty() && (!fits || ends_sentence)) {
            out += guarded(line) + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
    }
    return line.empty() ? out : out + guarded(line) + "\n";
}

std::string roff_example(std::string_view lines) {
    std::string out = ".RS 4\n.nf\n";
    while (!lines.empty()) {
        const size_t end = lines.find('\n');
        const std::string line = escaped(lines.substr(0, end));
        out += (line.empty() ? "\\&" : guarded(line)) + "\n";
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
    return out + ".fi\n.RE\n";
}

std::string roff_option(const OptionSet::Option& option, OptionForm form) {
    std::string text = ".TP\n" + heading(option, form) + "\n" + roff_text(with_default(option));
    if (!option.value.variable.empty() && form == OptionForm::CommandLine) {
        text += roff_text("The environment variable " + option.value.variable + " sets the default.");
    }
    return text;
}

std::string roff_options(const OptionSet& set, OptionForm form) {
    std::string text;
    for (const OptionSet::Group& group : set.groups()) {
        if (form == OptionForm::Ini && group.is_of_command_line) {
            continue;
        }
        text += ".SS " + escaped(group.title) + "\n";
        for (const OptionSet::Option& option : group.options) {
            text += roff_option(option, form);
        }
    }
    return text;
}

}  // namespace penstock::options
