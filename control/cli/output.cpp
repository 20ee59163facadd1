// SPDX-License-Identifier: Apache-2.0
#include "control/cli/output.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace penstock::cli {
namespace {

// Whether a plain YAML scalar is parsed back as the same string: not as a number, boolean, null or syntax.
bool is_plain(const std::string& text) {
    static const YAML::Node no_words = YAML::Load("[true, false, yes, no, on, off, y, n, null]");
    if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0 || text.back() == ':' ||
        text.back() == ' ') {
        return false;
    }
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& word : no_words) {
        if (word.Scalar() == lower) {
            return false;
        }
    }
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || std::strchr("._/- ", c) != nullptr;
    });
}

// JSON's escapes are a subset of those of YAML's double-quoted scalars.
std::string scalar_text(const YAML::Node& node) {
    // yaml-cpp tags quoted scalars "!": these are strings in JSON. Other scalars are numbers, booleans or
    // null.
    return node.Tag() == "!" && !is_plain(node.Scalar()) ? json_quoted(node.Scalar()) : node.Scalar();
}

void write(const YAML::Node& node, size_t indent, std::string& out);

// A value after "key:" or "-": on the same line if it is short, otherwise on the lines below.
void write_after(const YAML::Node& node, size_t indent, bool after_key, std::string& out) {
    if (node.IsScalar()) {
        out += " " + scalar_text(node) + "\n";
    } else if (node.IsNull()) {
        out += " null\n";
    } else if (node.size() == 0) {
        out += node.IsMap() ? " {}\n" : " []\n";
    } else if (after_key) {
        out += "\n";
        write(node, node.IsMap() ? indent + 2 : indent, out);
    } else {
        // "- key: value": the first line of the value follows the dash.
        std::string block;
        write(node, indent + 2, block);
        out += " " + block.substr(indent + 2);
    }
}

void write(const YAML::Node& node, size_t indent, std::string& out) {
    const std::string margin(indent, ' ');
    if (node.IsMap()) {
        for (const auto& field : node) {
            out +=
                margin +
                (is_plain(field.first.Scalar()) ? field.first.Scalar() : json_quoted(field.first.Scalar())) +
                ":";
            write_after(field.second, indent, true, out);
        }
    } else {
        for (const auto& item : node) {
            out += margin + "-";
            write_after(item, indent, false, out);
        }
    }
}

}  // namespace

std::string yaml_text(const std::string& json) {
    const YAML::Node root = YAML::Load(json);
    if (root.size() == 0) {
        return root.IsMap() ? "{}\n" : "[]\n";
    }
    std::string text;
    write(root, 0, text);
    return text;
}

}  // namespace penstock::cli
