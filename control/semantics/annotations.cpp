// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/annotations.hpp"

#include <map>
#include <string>
#include <vector>

#include "control/annotations/refused.hpp"
#include "control/base/log_tags.hpp"
#include "control/semantics/text.hpp"
#include "dataplane/lb/names.hpp"

namespace penstock::semantics {
namespace {

using annotations::Setting;
using annotations::Value;

// Reads the rows and collects notices.
class Reader {
 public:
    Reader(const Annotations& object, const Policy& policy, Notices& notices)
        : object_(object), policy_(policy), notices_(notices) {}

    // Returns a valid value. An invalid or unsupported value adds a notice.
    std::optional<Value> read(Setting setting) {
        const annotations::SettingSpec& spec = annotations::spec_of(setting);
        auto value = annotations::read(spec, object_);
        if (!value) {
            return std::nullopt;
        }
        const std::string key(value->spelling->key);
        if (!value->valid) {
            notices_.warn(reason::kInvalidAnnotation, key + ": " + quoted(value->text) +
                                                          " is not valid, expected " +
                                                          annotations::accepted(value->spelling->rule) +
                                                          "; " + std::string(spec.instead));
            return std::nullopt;
        }
        if (annotations::asks_for_more(spec, *value)) {
            report_unsupported(key, value->text, spec.effect);
        }
        return value;
    }

    // Keys that are refused whatever their value (ANN-G4).
    void read_refused() {
        for (const auto& [key, written] : object_) {
            const std::string_view value = trimmed(written);
            if (const annotations::RefusedKey* refused = annotations::find_refused(key);
                refused != nullptr && !value.empty()) {
                report_unsupported(key, value, refused->reason);
            }
        }
    }

    uint32_t number(Setting setting, uint32_t otherwise) {
        const auto value = read(setting);
        return value ? static_cast<uint32_t>(value->number) : otherwise;
    }
    std::string_view word(Setting setting) {
        const auto value = read(setting);
        return value ? value->word : std::string_view();
    }
    std::string_view text(Setting setting) {
        const auto value = read(setting);
        return value ? value->text : std::string_view();
    }

    // The key as the user wrote it, possibly that of another vendor; "" if the setting is absent.
    [[nodiscard]] std::string_view key_of(Setting setting) const {
        const auto value = annotations::read(annotations::spec_of(setting), object_);
        return value ? value->spelling->key : std::string_view();
    }
    [[nodiscard]] bool asks_for_more() const noexcept { return asks_for_more_; }

 private:
    void report_unsupported(const std::string& key, std::string_view value, std::string_view why) {
        notices_.warn(
            reason::kUnsupportedAnnotation,
            key + ": " + quoted(value) + " is not supported by this version (" + std::string(why) + "); " +
                (policy_.refuse_unsupported_annotations
                     ? "LoadBalancer IPs of the Service are withheld (--unsupported-annotations=refuse)"
                     : "the Service is served without it"));
        asks_for_more_ = true;
    }

    const Annotations& object_;
    const Policy& policy_;
    Notices& notices_;
    bool asks_for_more_ = false;
};

// DRAIN-004: unset, reset at once, or reset after a timeout.
std::optional<uint32_t> drain_timeout_of(Reader& reader) {
    const auto draining = reader.read(Setting::ConnectionDraining);
    const uint32_t timeout = reader.number(Setting::ConnectionDrainingTimeout, 300);
    if (!draining) {
        return std::nullopt;
    }
    return draining->number == 1 ? timeout : 0;
}

AnnotationSettings::HealthCheck health_check_of(Reader& reader) {
    using enum AnnotationSettings::HealthCheck;
    const std::string_view word = reader.word(Setting::HealthCheck);
    return word == "off" ? Off : word == "tcp" ? Tcp : word == "http" ? Http : Default;
}

model::Probe probe_of(Reader& reader, Notices& notices) {
    const model::Probe defaults;
    model::Probe probe;
    probe.interval_s = reader.number(Setting::HealthCheckInterval, defaults.interval_s);
    probe.timeout_s = reader.number(Setting::HealthCheckTimeout, defaults.timeout_s);
    if (probe.timeout_s >= probe.interval_s) {
        const Setting written = reader.key_of(Setting::HealthCheckTimeout).empty()
                                    ? Setting::HealthCheckInterval
                                    : Setting::HealthCheckTimeout;
        notices.warn(reason::kInvalidAnnotation,
                     std::string(reader.key_of(written)) + ": the timeout of " +
                         std::to_string(probe.timeout_s) + " s is not less than the interval of " +
                         std::to_string(probe.interval_s) + " s; " + std::to_string(defaults.timeout_s) +
                         " s and " + std::to_string(defaults.interval_s) + " s are used");
        probe.interval_s = defaults.interval_s;
        probe.timeout_s = defaults.timeout_s;
    }
    probe.healthy = reader.number(Setting::HealthCheckHealthyThreshold, defaults.healthy);
    probe.unhealthy = reader.number(Setting::HealthCheckUnhealthyThreshold, defaults.unhealthy);
    probe.port = static_cast<L4Port>(reader.number(Setting::HealthCheckPort, 0));
    if (const std::string_view path = reader.text(Setting::HealthCheckPath); !path.empty()) {
        probe.path = path;
    }
    return probe;
}

// ANN-21: the valid pairs, sorted. The first invalid one is reported.
std::string tags_of(Reader& reader, Notices& notices) {
    std::map<std::string_view, std::string_view> tags;
    const auto value = reader.read(Setting::Tags);
    std::string_view refused;
    for (const std::string_view pair : value ? split(value->text, ',') : std::vector<std::string_view>()) {
        if (pair.empty()) {
            continue;
        }
        const bool is_kept =
            tags.size() < kLogTagsMax && is_log_tag(pair) && tags.insert(split_log_tag(pair)).second;
        refused = is_kept || !refused.empty() ? refused : pair;
    }
    if (!refused.empty()) {
        notices.warn(reason::kInvalidAnnotation, std::string(value->spelling->key) + ": " + quoted(refused) +
                                                     " is not valid, expected " + std::string(kLogTagRule) +
                                                     ", at most " + std::to_string(kLogTagsMax) +
                                                     " pairs; the pair is skipped");
    }
    std::string text;
    for (const auto& [key, content] : tags) {
        text += (text.empty() ? "" : ",") + std::string(key) + "=" + std::string(content);
    }
    return text;
}

// ANN-G5.
void report_unknown(const Annotations& object, Notices& notices) {
    for (auto own = object.lower_bound(std::string(annotations::kNativePrefix));
         own != object.end() && own->first.starts_with(annotations::kNativePrefix); ++own) {
        if (annotations::find(own->first) != nullptr || annotations::find_refused(own->first) != nullptr) {
            continue;
        }
        const std::string_view nearest = annotations::nearest_native(own->first);
        notices.warn(reason::kUnknownAnnotation,
                     printable(own->first) + " is not known and has no effect" +
                         (nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?"));
    }
}

}  // namespace

AnnotationSettings settings_of(const Annotations& object, const Policy& policy, Notices& notices) {
    AnnotationSettings settings;
    settings.scheduler = policy.default_scheduler;
    settings.node_weight_ready_pods = policy.node_weight_ready_pods;
    if (object.empty()) {
        return settings;
    }
    Reader reader(object, policy, notices);
    settings.drain_timeout_s = drain_timeout_of(reader);
    settings.idle_timeout_s = reader.number(Setting::IdleTimeout, 0);
    settings.source_ranges_deny = reader.word(Setting::SourceRangesPolicy) == "deny";
    settings.health_check = health_check_of(reader);
    settings.probe = probe_of(reader, notices);
    if (const auto logs = reader.read(Setting::AccessLog)) {
        settings.access_log = logs->number == 1;
    }
    if (reader.word(Setting::AccessLogInterval) == "5") {
        settings.access_log_interval_min = 5;
    }
    if (const std::string_view sink = reader.text(Setting::AccessLogSink); sink != "default") {
        settings.access_log_sink = sink;
    }
    settings.access_log_prefix = reader.text(Setting::AccessLogPrefix);
    settings.tags = tags_of(reader, notices);
    if (const std::string_view selector = reader.text(Setting::BackendNodeSelector); !selector.empty()) {
        settings.node_selector = annotations::Selector::parse(selector).value();
    }
    settings.cross_zone = reader.number(Setting::CrossZone, 1) == 1;
    if (const auto only = reader.read(Setting::OnlyNodesWithEndpoints)) {
        settings.only_nodes_with_endpoints = only->number == 1;
    }
    if (const std::string_view scheduler = reader.word(Setting::Scheduler); !scheduler.empty()) {
        settings.scheduler = lb::parse_scheduler(scheduler).value_or(policy.default_scheduler);
    }
    if (const std::string_view weight = reader.word(Setting::NodeWeight); !weight.empty()) {
        settings.node_weight_ready_pods = weight == "ready-pods";
    }
    settings.node_weight_label = reader.text(Setting::NodeWeightLabel);
    settings.topology_keys = reader.text(Setting::TopologyKeys);
    settings.no_endpoints =
        reader.word(Setting::NoEndpointsAction) == "drop" ? lb::EmptyAction::Drop : lb::EmptyAction::Reject;
    settings.translate_family = reader.number(Setting::TranslateFamily, 0) == 1;
    settings.affinity_scope = reader.word(Setting::AffinityScope) == "service" ? lb::AffinityScope::Service
                                                                               : lb::AffinityScope::Port;
    // Used by the allocator of addresses (control/ipam); read here for the notices about invalid values.
    for (const Setting setting : {Setting::Scope, Setting::LoadBalancerIps, Setting::AddressPool,
                                  Setting::AllowSharedIp, Setting::SharedIpNamespaces}) {
        (void)reader.read(setting);
    }
    for (const annotations::SettingSpec& spec : annotations::specs()) {
        if (!spec.only.empty() && spec.setting != Setting::CrossZone) {
            (void)reader.read(spec.setting);
        }
    }
    reader.read_refused();
    settings.withholds_load_balancer_ips = policy.refuse_unsupported_annotations && reader.asks_for_more();
    report_unknown(object, notices);
    return settings;
}

std::optional<model::Probe> pod_probe_of(const AnnotationSettings& settings) {
    using enum AnnotationSettings::HealthCheck;
    if (settings.health_check != Tcp && settings.health_check != Http) {
        return std::nullopt;
    }
    model::Probe probe = settings.probe;
    probe.kind = settings.health_check == Tcp ? model::Probe::Kind::Tcp : model::Probe::Kind::Http;
    probe.fails_closed = false;
    return probe;
}

}  // namespace penstock::semantics
