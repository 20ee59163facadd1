// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/decode.hpp"

#include <algorithm>

#include "control/kube/object_schema.hpp"
#include "control/manifest/decode_object.hpp"
#include "control/manifest/fields.hpp"
#include "control/manifest/unknown_words.hpp"

namespace penstock::manifest {

std::string Problem::to_string() const {
    return file + (line == 0 ? "" : ":" + std::to_string(line)) + ": " +
           (object.empty() ? "" : object + ": ") + rule;
}

namespace {

struct Document {
    std::string_view text;
    uint32_t first_line = 1;
};

bool is_separator(std::string_view line) noexcept {
    return line.starts_with("---") &&
           (line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r');
}

// Blank lines, comments, directives and document end marks are not a document.
bool says_nothing(std::string_view line) noexcept {
    const size_t first = line.find_first_not_of(" \t\r");
    return first == std::string_view::npos || line[first] == '#' || line[0] == '%' || is_separator(line) ||
           line == "..." || line == "...\r";
}

// Splits at lines that begin with `---`. In YAML such a line ends a document everywhere, even inside block
// and quoted scalars, so no parsing is needed to find it. The separator stays at the start of its document,
// because content may follow it on the line.
std::vector<Document> cut(std::string_view text) {
    std::vector<Document> documents;
    size_t begin = 0;
    uint32_t begin_line = 1;
    uint32_t line_number = 0;
    bool empty = true;
    const auto finish = [&](size_t end, uint32_t next_line) {
        if (!empty) {
            documents.push_back({text.substr(begin, end - begin), begin_line});
        }
        begin = end;
        begin_line = next_line;
        empty = true;
    };
    for (size_t at = 0; at < text.size();) {
        const size_t newline = text.find('\n', at);
        const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
        const std::string_view line =
            text.substr(at, (newline == std::string_view::npos ? text.size() : newline) - at);
        ++line_number;
        if (is_separator(line)) {
            finish(at, line_number);
            empty =
                line.find_first_not_of("- \t\r") == std::string_view::npos || says_nothing(line.substr(3));
        } else if (!says_nothing(line)) {
            empty = false;
        }
        at = end;
    }
    finish(text.size(), line_number);
    return documents;
}

// Well-formed UTF-8 (RFC 3629) without NUL. yaml-cpp would guess other encodings, possibly a different one
// for each document. Text that is not UTF-8 cannot be sent to a gateway in a protobuf string.
bool is_utf8_text(std::string_view text) noexcept {
    for (size_t at = 0; at < text.size();) {
        const auto byte = [&](size_t offset) {
            return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0u;
        };
        const auto continues = [&](size_t offset) { return (byte(offset) & 0xc0u) == 0x80u; };
        const unsigned first = byte(0);
        if (first != 0 && first < 0x80) {
            at += 1;
        } else if (first >= 0xc2 && first < 0xe0 && continues(1)) {
            at += 2;
        } else if ((first & 0xf0u) == 0xe0 && continues(1) && continues(2) &&
                   !(first == 0xe0 && byte(1) < 0xa0) && !(first == 0xed && byte(1) >= 0xa0)) {
            at += 3;
        } else if (first >= 0xf0 && first < 0xf5 && continues(1) && continues(2) && continues(3) &&
                   !(first == 0xf0 && byte(1) < 0x90) && !(first == 0xf4 && byte(1) >= 0x90)) {
            at += 4;
        } else {
            return false;
        }
    }
    return true;
}

class FileDecoder {
 public:
    FileDecoder(const std::string& file_name, const DecodeLimits& limits)
        : file_name_(file_name), limits_(limits) {}

    void document(const Document& document) {
        if (!is_utf8_text(document.text)) {
            return unidentified(document.first_line, "is not UTF-8 text");
        }
        const Tree tree = parse_tree(document.text, document.first_line, limits_.tree);
        if (tree.fault) {
            unidentified(tree.fault->line, tree.fault->rule);
        } else if (tree.root && tree.root->kind != Value::Kind::Null) {
            object(*tree.root, {}, 0);
        }
    }

    void whole_file(std::string rule) {
        result_.problems.push_back({file_name_, 0, "", std::move(rule)});
        result_.has_unidentified = true;
    }

    [[nodiscard]] DecodedFile take() { return std::move(result_); }

 private:
    // If an object breaks rules many times, only the first twenty faults are reported.
    void report(const std::vector<Fault>& faults, const std::string& object,
                std::optional<ObjectKind> kind = std::nullopt,
                Problem::Severity severity = Problem::Severity::Error) {
        constexpr size_t kReportedMax = 20;
        const auto add = [&](uint32_t line, std::string rule) {
            result_.problems.push_back({.file = file_name_,
                                        .line = line,
                                        .object = object,
                                        .rule = std::move(rule),
                                        .severity = severity,
                                        .kind = kind});
        };
        for (size_t i = 0; i < std::min(faults.size(), kReportedMax); ++i) {
            add(faults[i].line, faults[i].rule);
        }
        if (faults.size() > kReportedMax) {
            add(faults[kReportedMax].line,
                "and " + std::to_string(faults.size() - kReportedMax) +
                    (severity == Problem::Severity::Error ? " more faults" : " more warnings"));
        }
    }

    void unidentified(uint32_t line, std::string rule) {
        result_.problems.push_back({file_name_, line, "", std::move(rule)});
        result_.has_unidentified = true;
    }

    // `outer` supplies the type fields that an item of a typed list omits.
    void object(const Value& value, const TypeOfObject& outer, uint32_t list_level) {
        if (value.kind != Value::Kind::Mapping) {
            return unidentified(value.line, std::string("a Kubernetes object must be a mapping, this is ") +
                                                to_string(value.kind));
        }
        std::vector<Fault> faults;
        const Fields fields(&value, "", &faults);
        const TypeOfObject type{kube::schema::text_or(fields, "apiVersion", outer.api_version),
                                kube::schema::text_or(fields, "kind", outer.kind)};
        if (!faults.empty() || type.api_version.empty() || type.kind.empty()) {
            report(faults, "");
            return unidentified(value.line, "a Kubernetes object must have an apiVersion and a kind");
        }
        if (const auto item_type = item_type_of(type)) {
            return list(value, *item_type, list_level);
        }
        const auto kind = kind_of(type);
        if (!kind) {
            if (const auto misspelt = unknown_type(type)) {
                report({{value.line, *misspelt}}, "", std::nullopt, Problem::Severity::Warning);
            }
            return;
        }
        const auto id = identify(*kind, fields);
        if (!id) {
            report(faults, type.kind);
            return unidentified(value.line, type.kind + " has no metadata.name");
        }
        // Reading it again for its name must not report a fault twice.
        faults = faults_in(value);
        Object decoded = decode_object(*id, type, fields);
        if (const auto wrong = wrong_name(*id)) {
            faults.push_back({value.line, *wrong});
        }
        report(faults, id->to_string(), kind);
        report(unknown_fields(value, *kind), id->to_string(), kind, Problem::Severity::Warning);
        result_.objects.push_back(
            {*id, value.line, faults.empty() ? std::optional(std::move(decoded)) : std::nullopt});
    }

    void list(const Value& value, const TypeOfObject& item_type, uint32_t list_level) {
        const Value* items = value.find("items");
        for (const Fault& fault : value.faults) {
            unidentified(fault.line, fault.rule);
        }
        if (items == nullptr || items->kind == Value::Kind::Null) {
            return;
        }
        // kubectl never writes a List of Lists. One nested level is tolerated; deeper nesting is refused.
        constexpr uint32_t kListLevelsMax = 2;
        if (items->kind != Value::Kind::List || list_level >= kListLevelsMax) {
            return unidentified(items->line, "items of a List must be a list of objects (GEN-003)");
        }
        for (const ValuePtr& item : items->items) {
            object(*item, item_type, list_level + 1);
        }
    }

    const std::string& file_name_;
    const DecodeLimits& limits_;
    DecodedFile result_;
};

}  // namespace

DecodedFile decode(std::string_view text, const std::string& file_name, const DecodeLimits& limits) {
    FileDecoder decoder(file_name, limits);
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) {
        text.remove_prefix(kByteOrderMark.size());
    }
    if (text.size() > limits.file_bytes_max) {
        decoder.whole_file("larger than " + std::to_string(limits.file_bytes_max) +
                           " bytes; split it into several files");
        return decoder.take();
    }
    const std::vector<Document> documents = cut(text);
    if (documents.size() > limits.documents_max) {
        decoder.whole_file("more than " + std::to_string(limits.documents_max) +
                           " documents; split it into several files");
        return decoder.take();
    }
    for (const Document& document : documents) {
        decoder.document(document);
    }
    return decoder.take();
}

}  // namespace penstock::manifest
