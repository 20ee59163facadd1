// SPDX-License-Identifier: Apache-2.0
#include "control/cli/contexts.hpp"

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "control/options/values.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::cli {
namespace {

namespace po = boost::program_options;

using Keys = std::map<std::string, std::string>;

constexpr const char* kKeys = "gateway, sync-server, tls-cert, tls-key or tls-ca";

bool is_context_name(const std::string& name) {
    constexpr size_t kNameMax = 253;  // that of a DNS name
    return !name.empty() && name.size() <= kNameMax && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    });
}

std::string absolute(const std::string& path, const std::string& file) {
    return path.empty() ? path : (std::filesystem::path(file).parent_path() / path).string();
}

// Moves the value of `name` out of `keys`; "" if there is none.
std::string take(Keys& keys, const std::string& name) {
    const auto found = keys.extract(name);
    return found.empty() ? std::string() : std::move(found.mapped());
}

Status refuse_rest(const Keys& keys, const std::string& where, const std::string& rule) {
    return keys.empty() ? Status()
                        : fail(Errc::InvalidArgument,
                               where + ": there is no key " + keys.begin()->first + "; must be " + rule);
}

client::TlsFiles take_tls(Keys& keys, const std::string& file, const client::TlsFiles& common) {
    const auto path = [&](const char* name, const std::string& otherwise) {
        const std::string own = take(keys, name);
        return own.empty() ? otherwise : absolute(own, file);
    };
    return {.certificate = path("tls-cert", common.certificate),
            .key = path("tls-key", common.key),
            .authority = path("tls-ca", common.authority)};
}

Result<Context> context_from(const std::string& name, Keys keys, const std::string& file,
                             const client::TlsFiles& common) {
    const std::string where = file + ": context " + name;
    Context context{.name = name};
    const std::string gateway = take(keys, "gateway");
    if (gateway.empty()) {
        return fail(Errc::InvalidArgument, where + ": the key gateway is missing");
    }
    PENSTOCK_TRY_IN(where + ": gateway", context.gateway, client::parse_target(gateway));
    if (const std::string sync_server = take(keys, "sync-server"); !sync_server.empty()) {
        PENSTOCK_TRY_IN(where + ": sync-server", context.sync_server, parse_sync_target(sync_server));
    }
    context.tls = take_tls(keys, file, common);
    PENSTOCK_TRY_STATUS(refuse_rest(keys, where, kKeys));
    return context;
}

// Whether a line is "[]". Boost reads the last character of a section's name without a check.
bool has_nameless_section(const std::string& text) {
    return std::ranges::any_of(split(text, '\n'), [](std::string_view line) {
        line = line.substr(0, line.find('#'));
        std::string bare;
        std::ranges::copy_if(line, std::back_inserter(bare),
                             [](unsigned char c) { return std::isspace(c) == 0; });
        return bare == "[]";
    });
}

// The sections in the order of the file, the keys before the first one under "".
Result<std::vector<std::pair<std::string, Keys>>> sections_of(const std::string& text,
                                                              const std::string& file) try {
    if (has_nameless_section(text)) {
        return fail(Errc::InvalidArgument, file + ": []: the name of a context is missing");
    }
    std::istringstream stream(text);
    const po::options_description none;
    std::vector<std::pair<std::string, Keys>> sections{{"", {}}};
    // Boost names a key of a section SECTION.KEY. Keys have no dot, names of contexts may.
    for (const auto& option : po::parse_config_file(stream, none, true).options) {
        const size_t dot = option.string_key.rfind('.');
        const std::string section = dot == std::string::npos ? "" : option.string_key.substr(0, dot);
        const std::string key = option.string_key.substr(dot == std::string::npos ? 0 : dot + 1);
        auto place = std::ranges::find(sections, section, &std::pair<std::string, Keys>::first);
        if (place == sections.end()) {
            if (!is_context_name(section)) {
                return fail(Errc::InvalidArgument, file + ": context " + section +
                                                       ": a name must be letters, digits, '.', '-' and '_'");
            }
            if (sections.size() > kContextsMax) {
                return fail(Errc::InvalidArgument,
                            file + ": more than " + std::to_string(kContextsMax) + " contexts");
            }
            place = sections.insert(sections.end(), {section, {}});
        }
        if (!place->second.emplace(key, option.value.empty() ? "" : option.value.front()).second) {
            return fail(Errc::InvalidArgument, file + (section.empty() ? "" : ": context " + section) + ": " +
                                                   key + " is given twice");
        }
    }
    return sections;
} catch (const po::error& error) {
    return fail(Errc::InvalidArgument, file + ": " + error.what());
}

}  // namespace

Result<client::Target> parse_sync_target(const std::string& text) {
    auto target = client::parse_target(text);
    if (!target || !target->is_unix()) {
        return options::refuse(text, "must be unix:PATH; penstock-sync listens on a Unix socket only");
    }
    return target;
}

Result<Contexts> parse_contexts(const std::string& text, const std::string& file) {
    PENSTOCK_TRY(auto sections, sections_of(text, file));
    Keys& common = sections.front().second;
    Contexts contexts{.file = file, .list = {}, .chosen = take(common, "context")};
    const client::TlsFiles tls = take_tls(common, file, {});
    PENSTOCK_TRY_STATUS(
        refuse_rest(common, file, "context, tls-cert, tls-key or tls-ca before the first [CONTEXT]"));
    for (size_t i = 1; i < sections.size(); ++i) {
        PENSTOCK_TRY(auto context, context_from(sections[i].first, std::move(sections[i].second), file, tls));
        contexts.list.push_back(std::move(context));
    }
    if (!contexts.chosen.empty()) {
        PENSTOCK_TRY_STATUS(find_context(contexts, contexts.chosen));
    }
    return contexts;
}

Result<const Context*> find_context(const Contexts& contexts, const std::string& name) {
    std::string names;
    for (const Context& context : contexts.list) {
        if (context.name == name) {
            return &context;
        }
        names += (names.empty() ? "; must be " : ", ") + context.name;
    }
    return fail(Errc::InvalidArgument, contexts.file + ": there is no context " + name + names);
}

}  // namespace penstock::cli
