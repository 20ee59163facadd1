// SPDX-License-Identifier: Apache-2.0
#include "control/sync/external_ip_policy.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "control/manifest/yaml_tree.hpp"
#include "control/semantics/text.hpp"

namespace penstock::sync {
namespace {

using manifest::Value;

constexpr std::string_view kRules = "externalIPs";
// The nesting of a rule: a mapping (file) > list (rules) > mapping (rule) > lists (fields).
constexpr manifest::TreeLimits kLimits{.depth_max = 8, .values_max = 200'000};

class PolicyReader {
 public:
    ExternalIpPolicy read(const Value& root) {
        ExternalIpPolicy policy;
        if (root.kind == Value::Kind::Null) {
            return policy;
        }
        for (const manifest::Fault& fault : manifest::faults_in(root)) {
            wrong(fault.line, fault.rule);
        }
        if (root.kind != Value::Kind::Mapping) {
            wrong(root.line, "the file must be a mapping with the field " + std::string(kRules));
            return policy;
        }
        only_these_fields(root, {kRules}, "the file");
        const Value* rules = root.find(kRules);
        if (rules == nullptr || rules->kind == Value::Kind::Null) {
            return policy;
        }
        if (rules->kind != Value::Kind::List) {
            wrong(rules->line, std::string(kRules) + " must be a list of rules");
            return policy;
        }
        for (size_t i = 0; i < rules->items.size(); ++i) {
            policy.push_back(read_rule(*rules->items[i], "rule " + std::to_string(i + 1)));
        }
        return policy;
    }

    [[nodiscard]] bool has_mistakes() const noexcept { return mistakes_ > 0; }
    [[nodiscard]] std::string mistakes() const {
        return mistakes_ <= kPolicyMistakesTold
                   ? told_
                   : told_ + "; and " + std::to_string(mistakes_ - kPolicyMistakesTold) + " more";
    }

 private:
    void wrong(uint32_t line, const std::string& what) {
        if (++mistakes_ <= kPolicyMistakesTold) {
            told_ += (told_.empty() ? "line " : "; line ") + std::to_string(line) + ": " + what;
        }
    }

    void only_these_fields(const Value& mapping, std::initializer_list<std::string_view> known,
                           const std::string& where) {
        for (const auto& [key, value] : mapping.fields) {
            if (std::ranges::find(known, std::string_view(key)) == known.end()) {
                wrong(value->line, where + ": unknown field " + semantics::quoted(key));
            }
        }
    }

    semantics::ExternalIpRule read_rule(const Value& rule, const std::string& name) {
        semantics::ExternalIpRule read;
        if (rule.kind != Value::Kind::Mapping) {
            wrong(rule.line, name + " must be a mapping");
            return read;
        }
        only_these_fields(rule, {"namespaces", "services", "cidrs"}, name);
        each_text(rule, "namespaces", name, [&](const Value& item) { take_namespace(item, name, read); });
        std::ranges::sort(read.namespaces);
        const auto [first, last] = std::ranges::unique(read.namespaces);
        read.namespaces.erase(first, last);
        each_text(rule, "cidrs", name, [&](const Value& item) {
            if (const auto cidr = Prefix::parse(item.text)) {
                read.cidrs.push_back(*cidr);
            } else {
                wrong(item.line, name + ": cidrs: " +
                                     semantics::printable(cidr.error().what, 2 * semantics::kShownCharsMax));
            }
        });
        if (const Value* services = rule.find("services")) {
            take_selector(*services, name, read);
        }
        return read;
    }

    void take_namespace(const Value& item, const std::string& name, semantics::ExternalIpRule& into) {
        if (item.text == "*") {
            into.all_namespaces = true;
        } else if (semantics::is_dns_label(item.text)) {
            into.namespaces.push_back(item.text);
        } else {
            wrong(item.line, name + ": namespaces: " + semantics::quoted(item.text) +
                                 " is neither the name of a namespace nor \"*\"");
        }
    }

    void take_selector(const Value& services, const std::string& name, semantics::ExternalIpRule& into) {
        if (services.kind != Value::Kind::String) {
            wrong(services.line, name + ": services must be a label selector, such as \"tier=web\"");
            return;
        }
        auto selector = annotations::Selector::parse(services.text);
        if (selector) {
            into.services = std::move(*selector);
        } else {
            wrong(services.line, name + ": services: " + semantics::quoted(services.text) + ": " +
                                     semantics::printable(selector.error().what));
        }
    }

    // Accepts a list or a single string. An absent or empty field is an error, because each rule must state
    // its scope.
    template <typename Take>
    void each_text(const Value& rule, std::string_view field, const std::string& name, const Take& take) {
        const Value* found = rule.find(field);
        const std::string what = name + ": " + std::string(field);
        if (found == nullptr || found->kind == Value::Kind::Null) {
            wrong(rule.line, what + " is missing");
            return;
        }
        if (found->kind == Value::Kind::String) {
            take(*found);
            return;
        }
        if (found->kind != Value::Kind::List) {
            wrong(found->line, what + " must be a list");
            return;
        }
        if (found->items.empty()) {
            wrong(found->line, what + " is empty");
        }
        for (const auto& item : found->items) {
            if (item->kind == Value::Kind::String) {
                take(*item);
            } else {
                wrong(item->line, what + ": each entry must be a string");
            }
        }
    }

    size_t mistakes_ = 0;
    std::string told_;
};

}  // namespace

Result<ExternalIpPolicy> parse_external_ip_policy(std::string_view text) {
    if (text.size() > kPolicyBytesMax) {
        return fail(Errc::InvalidArgument, "more than " + std::to_string(kPolicyBytesMax) + " bytes");
    }
    const manifest::Tree tree = manifest::parse_tree(text, 1, kLimits);
    if (tree.fault) {
        return fail(Errc::InvalidArgument,
                    "line " + std::to_string(tree.fault->line) + ": " + tree.fault->rule);
    }
    if (tree.root == nullptr) {
        return ExternalIpPolicy();
    }
    PolicyReader reader;
    ExternalIpPolicy policy = reader.read(*tree.root);
    if (reader.has_mistakes()) {
        return fail(Errc::InvalidArgument, reader.mistakes());
    }
    return policy;
}

Result<ExternalIpPolicy> read_external_ip_policy(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string text;
    // Reads one byte more than allowed, so that an endless file is not read further.
    text.resize(kPolicyBytesMax + 1);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!stream.is_open() || stream.bad()) {
        return fail(Errc::NotFound, file.string() + ": cannot read the file");
    }
    text.resize(static_cast<size_t>(stream.gcount()));
    auto policy = parse_external_ip_policy(text);
    return policy ? std::move(policy) : in_context(file.string(), std::move(policy).error());
}

}  // namespace penstock::sync
