// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/struct.pb.h>

#include "control/annotations/page.hpp"
#include "control/annotations/refused.hpp"
#include "control/annotations/value.hpp"
#include "control/cli/commands/list.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

using annotations::SettingSpec;
using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

void put(Fields& fields, const char* name, std::string_view text) {
    fields[name].set_string_value(std::string(text));
}

google::protobuf::Struct as_struct(const SettingSpec& spec) {
    google::protobuf::Struct all;
    Fields& fields = *all.mutable_fields();
    put(fields, "requirement", spec.requirement);
    put(fields, "default", spec.fallback);
    put(fields, "effect", spec.effect);
    put(fields, "supported", annotations::support_text(spec));
    put(fields, "if_invalid", spec.instead);
    auto& keys = *fields["keys"].mutable_list_value();
    for (const annotations::Spelling& spelling : spec.spellings) {
        Fields& key = *keys.add_values()->mutable_struct_value()->mutable_fields();
        put(key, "key", spelling.key);
        put(key, "accepts", annotations::accepted(spelling.rule));
    }
    return all;
}

google::protobuf::Struct as_struct(const annotations::RefusedKey& refused) {
    google::protobuf::Struct all;
    Fields& fields = *all.mutable_fields();
    put(fields, "requirement", refused.requirement);
    put(fields, "supported", "no");
    put(fields, "reason", refused.reason);
    Fields& key =
        *fields["keys"].mutable_list_value()->add_values()->mutable_struct_value()->mutable_fields();
    put(key, "key", refused.key);
    return all;
}

std::string overview() {
    Table table({{"KEY"}, {"DEFAULT"}, {"SUPPORTED"}, {"EFFECT"}});
    for (const SettingSpec& spec : annotations::specs()) {
        table.add({std::string(spec.spellings.front().key), std::string(spec.fallback),
                   annotations::support_text(spec), std::string(spec.effect)});
    }
    for (const annotations::RefusedKey& refused : annotations::refused_keys()) {
        if (refused.key.starts_with(annotations::kNativePrefix)) {
            table.add({std::string(refused.key), "-", "no", std::string(refused.reason)});
        }
    }
    return table.text();
}

std::string details(const SettingSpec& spec) {
    Table keys({{"KEY"}, {"ACCEPTS"}});
    for (const annotations::Spelling& spelling : spec.spellings) {
        keys.add({std::string(spelling.key), annotations::accepted(spelling.rule)});
    }
    return std::string(spec.effect) + " (" + std::string(spec.requirement) +
           ")\n\nThe first of these that is present and not blank is used:\n" + keys.text(2) +
           "\nDefault:    " + std::string(spec.fallback) + "\nInvalid:    " + std::string(spec.instead) +
           "\nSupported:  " + annotations::support_text(spec) + "\n";
}

Result<std::string> run_explain_annotations(Gateway*, const Request& request) {
    if (request.arguments.empty()) {
        std::vector<google::protobuf::Struct> all;
        for (const SettingSpec& spec : annotations::specs()) {
            all.push_back(as_struct(spec));
        }
        for (const annotations::RefusedKey& refused : annotations::refused_keys()) {
            all.push_back(as_struct(refused));
        }
        return request.is_structured() ? structured(json_list(all), request.format) : overview();
    }
    const std::string& asked = request.arguments[0];
    // The native prefix may be omitted.
    const std::string own = std::string(annotations::kNativePrefix) + asked;
    const SettingSpec* spec = annotations::find(asked);
    if (spec == nullptr) {
        spec = annotations::find(own);
    }
    const annotations::RefusedKey* refused = annotations::find_refused(asked);
    if (refused == nullptr) {
        refused = annotations::find_refused(own);
    }
    if (refused != nullptr) {
        return request.is_structured()
                   ? structured(json_text(as_struct(*refused)), request.format)
                   : std::string(refused->key) + " is refused: " + std::string(refused->reason) + " (" +
                         std::string(refused->requirement) + ")\n";
    }
    if (spec == nullptr) {
        const std::string_view nearest =
            annotations::nearest_native(asked.starts_with(annotations::kNativePrefix) ? asked : own);
        return fail(Errc::NotFound,
                    "there is no annotation " + asked +
                        (nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?"));
    }
    return request.is_structured() ? structured(json_text(as_struct(*spec)), request.format) : details(*spec);
}

}  // namespace

Command explain_annotations() {
    return {.words = {"explain", "annotations"},
            .arguments = "[KEY]",
            .arguments_max = 1,
            .options = {"output"},
            .summary = "List the annotations of a Service: accepted values, default, effect, and support",
            .needs_gateway = false,
            .run = run_explain_annotations};
}

}  // namespace penstock::cli
