// Every annotation that Penstock knows on a Service, as one table of data (section 19 of the requirement sheet): our own key, the keys of
// the gateways that people come from, what values they take and in which unit, what happens without a value and with a bad one. Whoever
// reads settings, keeps annotations, suggests a key, or prints a page about them, reads this table; so the page tells what the code does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace penstock::annotations {

// Rows by what they set, in the order of the table.
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
    ProxyProtocol,
    ProxyProtocolPorts,
    BackendNodeSelector,
    CrossZone,
    OnlyNodesWithEndpoints,
    Scope,
    MaxBandwidthOut,
    VipId,
    TlsMode,
    Tags,
    LoadBalancerIps,
    AddressPool,
    AllowSharedIp,
    FilterGroups,
    Scheduler,
    NodeWeightLabel,
    TopologyKeys,
    NoEndpointsAction,
    Snat,
    LoadBalancerKind,
    InternetChargeType,
    ListenerParameters,
    AlphaExternalTraffic,
    TranslateFamily,
    SourceRanges,
    ExternalIps,
    AffinityScope,
    NodeWeight,
};
inline constexpr size_t kSettings = 43;

enum class Kind : uint8_t {
    Bool,                 // true, false, 1, 0, t, f in any case (ANN-G2)
    Number,               // decimal digits, nothing else
    Duration,             // the same, seconds; or with s, m or h behind
    Word,                 // one of `words`
    Name,                 // lower-case alphanumerics, '.' and '-', of a bounded length
    Text,                 // printable ASCII of a bounded length
    UrlPath,              // begins with '/'
    FolderPath,           // relative, and stays below where it starts
    LabelKey,             // of Kubernetes
    Selector,             // label selector of Kubernetes
    Names,                // Name, separated by commas
    Ports,                // 1-65535, separated by commas
    Pairs,                // k=v, separated by commas
    OneAddressPerFamily,  // IP addresses, separated by commas
    List,                 // separated by commas; its reader judges each item
};

struct Word {
    std::string_view spelled;
    std::string_view means;  // in the words of the native key
};

// What a key's value may be.
struct Rule {
    Kind kind = Kind::Text;
    // Number and Duration: the value, in this key's own unit; Name, Text: its length.
    int64_t min = 0;
    int64_t max = 0;
    // Number: what one is worth in the native unit (60 where an alias has minutes and we have seconds).
    uint32_t worth = 1;
    std::string_view unit;        // for people
    std::span<const Word> words;  // Word: those there are; any other kind: taken besides
    bool any_case = false;        // of `words`
    // Word: what any other value means; "" where any other is invalid.
    std::string_view any_other_means;
};

struct Spelling {
    std::string_view key;
    Rule rule;
};

// What of a setting this version does not do. It is told once a value asks for it (ANN-G4), and only then.
enum class Support : uint8_t {
    Full,
    Neutral,  // the value `neutral` asks for nothing, every other one for something that is not there
    None,     // any value asks for it
};

struct Row {
    Setting setting;
    std::string_view requirement;  // "ANN-03"
    std::span<const Spelling>
        spellings;  // in the order of precedence (ANN-G1), the native key first, where there is one
    std::string_view fallback;  // what holds without a value; for people
    std::string_view effect;    // one line
    std::string_view instead;   // what is done where a value is invalid; for Events
    Support support = Support::Full;
    std::string_view neutral;
};

inline constexpr std::string_view kNativePrefix = "penstock.io/";

// In the order of Setting.
[[nodiscard]] std::span<const Row> rows() noexcept;
[[nodiscard]] const Row& row_of(Setting setting) noexcept;

// The row that a key belongs to; null for a key that is not in the table.
[[nodiscard]] const Row* find(std::string_view key) noexcept;

// The native key nearest to `key` by edits of one character; "" where none is near enough to be meant (ANN-G5).
[[nodiscard]] std::string_view nearest_native(std::string_view key);

// Names that schedulers have in annotations and options (SCHED-001).
[[nodiscard]] std::span<const Word> scheduler_names() noexcept;

}  // namespace penstock::annotations
