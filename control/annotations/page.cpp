#include "control/annotations/page.hpp"

#include "control/annotations/value.hpp"

namespace penstock::annotations {
namespace {

constexpr std::string_view kIntroduction =
    "# Annotations of a Service\n"
    "\n"
    "Written by `annotations-page` from the table in control/annotations/table.cpp; `penstockctl explain "
    "annotations` prints the same. Do\n"
    "not edit it: a test compares the two.\n"
    "\n"
    "Of the keys of one row the first that is present and not blank counts; the others are ignored. White "
    "space around a value does not\n"
    "count, and a blank value is none. A value that is not accepted is told as an Event `InvalidAnnotation` "
    "about the Service, and the\n"
    "last column says what is done instead. What a row calls not supported is recognised, checked, and told "
    "as an Event\n"
    "`UnsupportedAnnotation` where a value asks for it: the Service is served without it, or not on its "
    "LoadBalancer IPs where\n"
    "penstock-sync runs with `--unsupported-annotations=refuse`. An unknown key below `penstock.io/` is told "
    "as an Event\n"
    "`UnknownAnnotation`; other unknown keys are nobody's business. A change leaves established flows alone "
    "where the row does not name "
    "them.\n";

// A bar would end the cell.
std::string cell(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        escaped += c == '|' ? "\\|" : std::string(1, c);
    }
    return escaped;
}

}  // namespace

std::string support_text(const Row& row) {
    switch (row.support) {
        case Support::Full:
            return "yes";
        case Support::Neutral:
            return row.neutral == "fine" ? "no" : "only " + std::string(row.neutral);
        case Support::None:
            return "no";
    }
    return "";
}

std::string page_text() {
    std::string text(kIntroduction);
    text += "\n| Key | Accepts | Default | Effect | Supported | Else |\n|---|---|---|---|---|---|\n";
    for (const Row& row : rows()) {
        std::string keys;
        std::string accepts;
        for (const Spelling& spelling : row.spellings) {
            keys += (keys.empty() ? "`" : "<br>`") + std::string(spelling.key) + "`";
            accepts += (accepts.empty() ? "" : "<br>") + cell(accepted(spelling.rule));
        }
        text += "| " + keys + " | " + accepts + " | " + cell(row.fallback) + " | " + cell(row.effect) + " (" +
                std::string(row.requirement) + ") | " + support_text(row) + " | " + cell(row.instead) +
                " |\n";
    }
    return text;
}

}  // namespace penstock::annotations
