// SPDX-License-Identifier: Apache-2.0
#include "control/annotations/selector.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::annotations {
namespace {

constexpr bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
constexpr bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
// Characters of a key or a value. The whole text is validated afterwards.
constexpr bool is_word_char(char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '/';
}

bool is_qualified_part(std::string_view text) {
    const auto may_stand_inside = [](char c) {
        return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= 63 && is_alphanumeric(text.front()) &&
           is_alphanumeric(text.back()) && std::ranges::all_of(text, may_stand_inside);
}

bool is_dns_prefix(std::string_view text) {
    if (text.empty() || text.size() > 253) {
        return false;
    }
    const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    char before = '.';
    for (const char c : text) {
        // A label begins and ends with an alphanumeric.
        const bool fits = is_lower(c) || (c == '-' && before != '.') || (c == '.' && is_lower(before));
        if (!fits) {
            return false;
        }
        before = c;
    }
    return is_lower(before);
}

}  // namespace

bool is_label_key(std::string_view text) noexcept {
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return is_qualified_part(text);
    }
    return is_dns_prefix(text.substr(0, slash)) && is_qualified_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) noexcept {
    return text.empty() || is_qualified_part(text);
}

class Selector::Reader {
 public:
    explicit Reader(std::string_view text) : rest_(text) {}

    Result<std::vector<Part>> read() {
        std::vector<Part> parts;
        do {
            if (parts.size() == Selector::kPartsMax) {
                return wrong("a selector has at most 64 requirements, but there is one more");
            }
            PENSTOCK_TRY(auto part, read_part());
            parts.push_back(std::move(part));
        } while (take(","));
        static_assert(Selector::kPartsMax == 64, "the message says so");
        if (!rest_.empty()) {
            return wrong("a comma is missing");
        }
        return parts;
    }

 private:
    // Also skips trailing blanks.
    bool take(std::string_view token) {
        skip_blanks();
        if (!rest_.starts_with(token)) {
            return false;
        }
        rest_.remove_prefix(token.size());
        skip_blanks();
        return true;
    }

    std::string_view take_word() {
        skip_blanks();
        const auto end = std::ranges::find_if_not(rest_, is_word_char);
        const std::string_view word = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
        rest_.remove_prefix(word.size());
        skip_blanks();
        return word;
    }

    void skip_blanks() {
        rest_.remove_prefix(static_cast<size_t>(std::ranges::find_if_not(rest_, is_blank) - rest_.begin()));
    }

    Result<Part> read_part() {
        Part part;
        if (take("!")) {
            part.op = Operator::Absent;
        }
        const std::string_view key = take_word();
        if (!is_label_key(key)) {
            return wrong("a label key is expected");
        }
        part.key = key;
        if (part.op == Operator::Absent || rest_.empty() || rest_.front() == ',') {
            return part;
        }
        if (take("!=")) {
            part.op = Operator::NotIn;
            return with_value(std::move(part));
        }
        if (take("==") || take("=")) {
            part.op = Operator::In;
            return with_value(std::move(part));
        }
        const std::string_view op = take_word();
        if (op != "in" && op != "notin") {
            return wrong("one of = == != in notin is expected");
        }
        part.op = op == "in" ? Operator::In : Operator::NotIn;
        return with_list(std::move(part));
    }

    Result<Part> with_value(Part part) {
        const std::string_view value = take_word();
        if (!is_label_value(value)) {
            return wrong("a label value is expected");
        }
        part.values.emplace_back(value);
        return part;
    }

    Result<Part> with_list(Part part) {
        if (!take("(")) {
            return wrong("( is expected");
        }
        do {
            auto longer = with_value(std::move(part));
            if (!longer) {
                return longer;
            }
            part = std::move(*longer);
        } while (take(","));
        if (!take(")")) {
            return wrong(") is expected");
        }
        std::ranges::sort(part.values);
        return part;
    }

    [[nodiscard]] std::unexpected<Error> wrong(const char* what) const {
        constexpr size_t kShown = 32;
        return fail(
            Errc::InvalidArgument,
            std::string(what) + (rest_.empty() ? std::string(" at the end")
                                               : " before \"" + std::string(rest_.substr(0, kShown)) + "\""));
    }

    std::string_view rest_;
};

Result<Selector> Selector::parse(std::string_view text) {
    PENSTOCK_TRY(auto parts, Reader(text).read());
    Selector selector;
    selector.parts_ = std::move(parts);
    return selector;
}

bool Selector::matches(const Labels& labels) const {
    return std::ranges::all_of(parts_, [&](const Part& part) {
        const auto label = labels.find(part.key);
        const bool is_there = label != labels.end();
        switch (part.op) {
            case Operator::Exists:
                return is_there;
            case Operator::Absent:
                return !is_there;
            case Operator::In:
                return is_there && std::ranges::binary_search(part.values, label->second);
            case Operator::NotIn:
                // As in Kubernetes, != and notin also match an object without the label.
                return !is_there || !std::ranges::binary_search(part.values, label->second);
        }
        return false;
    });
}

std::string Selector::text() const {
    std::string text;
    for (const Part& part : parts_) {
        text += text.empty() ? "" : ",";
        const bool is_in = part.op == Operator::In;
        switch (part.op) {
            case Operator::Exists:
                text += part.key;
                break;
            case Operator::Absent:
                text += "!" + part.key;
                break;
            case Operator::In:
            case Operator::NotIn:
                if (part.values.size() == 1) {
                    text += part.key + (is_in ? "=" : "!=") + part.values.front();
                    break;
                }
                text += part.key + (is_in ? " in (" : " notin (");
                for (const std::string& value : part.values) {
                    text += (&value == &part.values.front() ? "" : ",") + value;
                }
                text += ")";
                break;
        }
    }
    return text;
}

}  // namespace penstock::annotations
