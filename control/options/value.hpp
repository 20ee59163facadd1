// SPDX-License-Identifier: Apache-2.0
// One option's value: its form for --help, and the variable that it is stored in. The variable's contents are
// the default. A Value refers to the variable, which must outlive it.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/options/mistakes.hpp"
#include "control/options/values.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::options {

struct Value {
    enum class Arity : uint8_t {
        One,     // NAME VALUE
        Many,    // may be repeated
        Switch,  // NAME VALUE, or NAME alone for on
        Flag,    // NAME alone
    };

    std::string placeholder = {};  // form of the value, for --help: "ADDRESS", "on|off"
    std::string fallback = {};     // the default, as text; "": none, or one that the description names
    Arity arity = Arity::One;
    // Stores the texts: one, or with Many at least one. The error does not name the option.
    std::function<Status(const std::vector<std::string>&)> store;
    std::string variable = {};     // environment variable that replaces the default; "": none
    std::string environment = {};  // its value; "": not set

    // --help shows no default; the description names it.
    [[nodiscard]] Value without_default() && {
        fallback.clear();
        return std::move(*this);
    }
    // The variable's value applies if the option is not given.
    [[nodiscard]] Value or_variable(std::string name, std::string value) && {
        variable = std::move(name);
        environment = std::move(value);
        return std::move(*this);
    }
};

// Any value with a parser: Result<T> parse(const std::string&). `fallback` is parsed as well.
template <typename T, typename Parse>
[[nodiscard]] Value parsed(T& target, std::string placeholder, Parse parse, std::string fallback = "") {
    return {.placeholder = std::move(placeholder),
            .fallback = std::move(fallback),
            .store = [&target, parse = std::move(parse)](const std::vector<std::string>& texts) -> Status {
                PENSTOCK_TRY(target, parse(texts.front()));
                return {};
            }};
}

// Parsers for texts that stay text: any text, and one that `check` (a Status) accepts.
[[nodiscard]] inline Result<std::string> any_text(const std::string& text) {
    return text;
}
template <typename Check>
[[nodiscard]] auto checked(Check check) {
    return [check = std::move(check)](const std::string& text) -> Result<std::string> {
        PENSTOCK_TRY_STATUS(check(text));
        return text;
    };
}

// on or off. The value is required.
[[nodiscard]] inline Value on_off(bool& target) {
    return parsed(target, "on|off", parse_on_off, target ? "on" : "off");
}

// on or off. The name alone means on; so does an empty value in an INI file.
[[nodiscard]] inline Value on_off_switch(bool& target) {
    Value value = parsed(
        target, "on|off",
        [](const std::string& text) { return text.empty() ? Result<bool>(true) : parse_on_off(text); },
        target ? "on" : "off");
    value.arity = Value::Arity::Switch;
    return value;
}

// True if the name is given. For programs whose command line contains words besides options.
[[nodiscard]] inline Value flag(bool& target) {
    return {.arity = Value::Arity::Flag, .store = [&target](const auto&) -> Status {
                target = true;
                return {};
            }};
}
// The same without a variable: OptionSet::is_given() returns it.
[[nodiscard]] inline Value flag() {
    return {.arity = Value::Arity::Flag, .store = [](const auto&) { return Status(); }};
}

// One of several words. `placeholder` is derived from them: "node|external".
template <std::equality_comparable T>
[[nodiscard]] Value one_of(T& target, std::initializer_list<Word<std::type_identity_t<T>>> words) {
    std::vector<Word<T>> known(words);
    std::string placeholder, fallback;
    for (const Word<T>& word : known) {
        placeholder += (placeholder.empty() ? "" : "|") + std::string(word.spelled);
        if (word.value == target) {
            fallback = word.spelled;
        }
    }
    return parsed(
        target, std::move(placeholder),
        [known = std::move(known)](const std::string& text) { return parse_word(text, known); },
        std::move(fallback));
}

// A whole number. T is an integer, or an optional integer without a default.
template <typename T>
[[nodiscard]] Value number(T& target, Range range, std::string placeholder = "N") {
    std::string fallback;
    if constexpr (std::integral<T>) {
        fallback = std::to_string(target);
    }
    return parsed(
        target, std::move(placeholder),
        [range](const std::string& text) -> Result<T> {
            PENSTOCK_TRY(const uint64_t value, parse_number(text, range));
            if constexpr (std::integral<T>) {
                return static_cast<T>(value);
            } else {
                return T(static_cast<typename T::value_type>(value));
            }
        },
        std::move(fallback));
}

// A time, as a whole number of the target's own unit. `range.unit` names this unit.
template <typename Rep, typename Period>
[[nodiscard]] Value duration(std::chrono::duration<Rep, Period>& target, Range range,
                             std::string placeholder) {
    using Duration = std::chrono::duration<Rep, Period>;
    return parsed(
        target, std::move(placeholder),
        [range](const std::string& text) -> Result<Duration> {
            PENSTOCK_TRY(const uint64_t count, parse_number(text, range));
            return Duration(static_cast<Rep>(count));
        },
        std::to_string(target.count()));
}

// Any text. T is a string or a filesystem path.
template <typename T>
[[nodiscard]] Value text(T& target, std::string placeholder) {
    return parsed(target, std::move(placeholder), any_text, std::string(target));
}

// A text that `check` accepts, or `none`, a word for "". Without a default of its own, the default is `none`
// if `target` is empty.
template <typename Check>
[[nodiscard]] Value text_or(std::string_view none, std::string& target, std::string placeholder,
                            Check check) {
    return parsed(
        target, std::move(placeholder),
        [none = std::string(none),
         check = std::move(check)](const std::string& given) -> Result<std::string> {
            if (given == none) {
                return std::string();
            }
            if (const auto checked = check(given); !checked) {
                return fail(Errc::InvalidArgument, checked.error().what + ", or " + none);
            }
            return given;
        },
        target.empty() ? std::string(none) : target);
}

struct ListForm {
    char separator = 0;        // also separates entries: ',' makes "a, b" two, and empty ones are skipped
    bool is_distinct = false;  // equal entries are refused
};

// Entries, each parsed by `parse`; they replace the contents of `target`. The error has a line for each
// entry that is refused.
template <typename T, typename Parse>
[[nodiscard]] Value list(std::vector<T>& target, std::string placeholder, Parse parse, ListForm form = {}) {
    const auto store = [&target, parse = std::move(parse), form](const auto& texts) -> Status {
        std::vector<T> entries;
        Mistakes mistakes;
        for (const std::string& text : texts) {
            for (const std::string_view piece :
                 form.separator != 0 ? split(text, form.separator) : std::vector<std::string_view>{text}) {
                if (form.separator != 0 && piece.empty()) {
                    continue;
                }
                Result<T> entry = parse(std::string(piece));
                if (!entry) {
                    mistakes.note(entry.error());
                } else if (form.is_distinct && std::ranges::find(entries, *entry) != entries.end()) {
                    mistakes.note(refuse(piece, "is given twice"));
                } else {
                    entries.push_back(*std::move(entry));
                }
            }
        }
        PENSTOCK_TRY_STATUS(mistakes.result());
        target = std::move(entries);
        return {};
    };
    return {.placeholder = std::move(placeholder), .arity = Value::Arity::Many, .store = store};
}

}  // namespace penstock::options
