// SPDX-License-Identifier: Apache-2.0
// The table of all Service annotations that Penstock supports (section 19 of the requirement sheet); those
// that it only recognises are in refused.hpp. For each setting: the native key, the keys of other gateways,
// the accepted values with their units, the default, and the action for an invalid value. Code that reads
// settings, keeps annotations, suggests a key or prints documentation uses this table, so the documentation
// always matches the code.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace penstock::annotations {

// Settings, in the order of the table.
enum class Setting : uint8_t {
    ConnectionDraining,
    ConnectionDrainingTimeout,
    IdleTimeout,
    SourceRangesPolicy,
    HealthCheck,
    HealthCheckInterval,
    HealthCheckTimeout,
    HealthCheckHealthyThreshold,
    HealthCheckUnhealthyThreshold,
    HealthCheckPort,
    HealthCheckPath,
    AccessLog,
    AccessLogInterval,
    AccessLogSink,
    AccessLogPrefix,
    BackendNodeSelector,
    CrossZone,
    OnlyNodesWithEndpoints,
    Scope,
    TlsMode,
    Tags,
    LoadBalancerIps,
    AddressPool,
    AllowSharedIp,
    SharedIpNamespaces,
    Scheduler,
    NodeWeightLabel,
    TopologyKeys,
    NoEndpointsAction,
    Snat,
    LoadBalancerKind,
    InternetChargeType,
    TranslateFamily,
    SourceRanges,
    ExternalIps,
    AffinityScope,
    NodeWeight,
};
inline constexpr size_t kSettings = 37;

enum class Kind : uint8_t {
    Bool,                 // true, false, 1, 0, t, f in any case (ANN-G2)
    Number,               // decimal digits only
    Duration,             // seconds in decimal digits, optionally with suffix s, m or h
    Word,                 // one of `words`
    Name,                 // lower-case alphanumerics, '.' and '-', of a bounded length
    Text,                 // printable ASCII of a bounded length
    UrlPath,              // begins with '/'
    FolderPath,           // relative, without ".." (control/base/log_names.hpp)
    LabelKey,             // Kubernetes label key
    Selector,             // Kubernetes label selector
    Names,                // as Name, separated by commas
    OneAddressPerFamily,  // IP addresses, separated by commas
    List,                 // separated by commas; the reader of the setting validates each item
};

struct Word {
    std::string_view spelled;
    std::string_view means;  // the equivalent word of the native key
};

// The accepted values of a key.
struct Rule {
    Kind kind = Kind::Text;
    // Range. Number and Duration: of the value, in this key's own unit. Name, Text, UrlPath: of the length.
    int64_t min = 0;
    int64_t max = 0;
    // Number: the factor to the native unit (60 if an alias uses minutes and the native key seconds).
    uint32_t worth = 1;
    std::string_view unit;        // for display
    std::span<const Word> words;  // Word: the accepted words; other kinds: words accepted in addition
    bool any_case = false;        // `words` are not case-sensitive
    // Word: the native word for any other value; "" if other values are invalid.
    std::string_view any_other_means;
};

struct Spelling {
    std::string_view key;
    Rule rule;
};

// One setting: its keys, values, default and support.
struct SettingSpec {
    Setting setting;
    std::string_view requirement;  // "ANN-03"
    // In order of precedence (ANN-G1); the native key, if any, comes first.
    std::span<const Spelling> spellings;
    std::string_view fallback;  // the value without an annotation; for display
    std::string_view effect;    // description in one line
    std::string_view instead;   // action for an invalid value; for Events
    // The only value that this version supports; "" if it supports all. Others are reported (ANN-G4).
    std::string_view only;
};

inline constexpr std::string_view kNativePrefix = "penstock.io/";

// In the order of Setting.
[[nodiscard]] std::span<const SettingSpec> specs() noexcept;
[[nodiscard]] const SettingSpec& spec_of(Setting setting) noexcept;

// The setting of a key; null for an unknown key.
[[nodiscard]] const SettingSpec* find(std::string_view key) noexcept;

// The native key, possibly a refused one, with the smallest edit distance to `key`; "" if none is similar
// (ANN-G5).
[[nodiscard]] std::string_view nearest_native(std::string_view key);

// Scheduler names in annotations and options (SCHED-001).
[[nodiscard]] std::span<const Word> scheduler_names() noexcept;

}  // namespace penstock::annotations
