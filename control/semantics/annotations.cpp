#include "control/semantics/annotations.hpp"

#include <algorithm>
#include <array>

#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr std::string_view kCiliumAlgorithm = "service.cilium.io/lb-algorithm";
constexpr std::array<std::string_view, 3> kSchedulerKeys = {"penstock.io/scheduler", "kube-router.io/service.scheduler", kCiliumAlgorithm};
constexpr std::array<std::string_view, 1> kNoEndpointsKeys = {"penstock.io/no-endpoints-action"};

struct SchedulerName {
    std::string_view name;
    lb::SchedulerKind kind;
};
constexpr std::array kSchedulers = {SchedulerName{"rr", lb::SchedulerKind::RoundRobin}, SchedulerName{"random", lb::SchedulerKind::Random},
                                    SchedulerName{"mh", lb::SchedulerKind::Maglev}};
constexpr std::array kCiliumSchedulers = {SchedulerName{"random", lb::SchedulerKind::Random},
                                          SchedulerName{"maglev", lb::SchedulerKind::Maglev}};
// SCHED-001 knows these as well; the packet path does not have them.
constexpr std::array<std::string_view, 7> kOtherSchedulers = {"wrr", "lc", "wlc", "sh", "dh", "sed", "nq"};

void warn_invalid(Notices& notices, const AnnotationValue& found, std::string_view accepted, std::string_view used_instead) {
    notices.warn(reason::kInvalidAnnotation, std::string(found.key) + ": " + quoted(found.value) + " is not one of " +
                                                 std::string(accepted) + "; " + std::string(used_instead));
}

constexpr std::string_view kGlobalInstead = "the gateway's own scheduler is used";

}  // namespace

std::optional<AnnotationValue> first_set(const Annotations& annotations, std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
        const auto found = annotations.find(std::string(key));
        if (found == annotations.end()) {
            continue;
        }
        if (const std::string_view value = trimmed(found->second); !value.empty()) {
            return AnnotationValue{.key = key, .value = value};
        }
    }
    return std::nullopt;
}

lb::SchedulerKind scheduler_of(const Annotations& annotations, lb::SchedulerKind otherwise, Notices& notices) {
    const auto found = first_set(annotations, kSchedulerKeys);
    if (!found) {
        return otherwise;
    }
    const bool cilium = found->key == kCiliumAlgorithm;
    // A name longer than any we know is not worth a copy, and may be 256 KiB of anything.
    const std::string name = lower_case(found->value.substr(0, 16));
    const std::span<const SchedulerName> known = cilium ? std::span<const SchedulerName>(kCiliumSchedulers) : kSchedulers;
    if (const auto scheduler = std::ranges::find(known, name, &SchedulerName::name); scheduler != known.end()) {
        return scheduler->kind;
    }
    if (!cilium && std::ranges::find(kOtherSchedulers, name) != kOtherSchedulers.end()) {
        notices.warn(reason::kUnsupportedAnnotation,
                     std::string(found->key) + ": scheduler " + name + " is not supported by this version; " + std::string(kGlobalInstead));
    } else {
        warn_invalid(notices, *found, cilium ? "random, maglev" : "rr, wrr, lc, wlc, sh, dh, sed, nq, random, mh", kGlobalInstead);
    }
    return otherwise;
}

lb::EmptyAction no_endpoints_action_of(const Annotations& annotations, Notices& notices) {
    const auto found = first_set(annotations, kNoEndpointsKeys);
    if (!found || found->value == "reject") {
        return lb::EmptyAction::Reject;
    }
    if (found->value == "drop") {
        return lb::EmptyAction::Drop;
    }
    warn_invalid(notices, *found, "reject, drop", "new flows are rejected");
    return lb::EmptyAction::Reject;
}

}  // namespace penstock::semantics
