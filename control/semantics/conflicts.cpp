// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/conflicts.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr IpAddr kAnyV4 = IpAddr::v4(0, 0, 0, 0);

// Reads fields of a fixed-width text from its start. A mismatch consumes nothing.
class TextReader {
 public:
    explicit TextReader(std::string_view text) : rest_(text) {}

    std::optional<int> number(size_t digits) {
        int value = 0;
        if (rest_.size() < digits) {
            return std::nullopt;
        }
        for (const char c : rest_.substr(0, digits)) {
            if (c < '0' || c > '9') {
                return std::nullopt;
            }
            value = value * 10 + (c - '0');
        }
        rest_.remove_prefix(digits);
        return value;
    }
    bool one_of(std::string_view characters) {
        if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) {
            return false;
        }
        last_ = rest_.front();
        rest_.remove_prefix(1);
        return true;
    }
    char last() const { return last_; }
    bool at_end() const { return rest_.empty(); }

 private:
    std::string_view rest_;
    char last_ = 0;
};

const char* class_name(lb::FrontendClass cls) noexcept {
    switch (cls) {
        case lb::FrontendClass::ClusterIp:
            return "ClusterIP";
        case lb::FrontendClass::LoadBalancerIp:
            return "LoadBalancer IP";
        case lb::FrontendClass::ExternalIp:
            return "external IP";
        case lb::FrontendClass::NodePort:
            return "NodePort";
    }
    return "unknown";
}

bool is_vip(lb::FrontendClass cls) noexcept {
    return cls == lb::FrontendClass::LoadBalancerIp || cls == lb::FrontendClass::ExternalIp;
}

}  // namespace

std::string FrontendTuple::to_string() const {
    const std::string port_and_protocol = std::to_string(port) + "/" + penstock::to_string(protocol);
    if (address.is_unspecified()) {
        return std::string(penstock::to_string(address.family())) + " NodePort " + port_and_protocol;
    }
    return (address.is_v4() ? address.to_string() : "[" + address.to_string() + "]") + ":" +
           port_and_protocol;
}

FrontendTuple node_port_tuple(IpFamily family, L4Port port, Protocol protocol) noexcept {
    return {.address = family == IpFamily::V4 ? kAnyV4 : IpAddr(), .port = port, .protocol = protocol};
}

// RFC 3339, 5.6: 2006-01-02T15:04:05[.fraction](Z|+hh:mm|-hh:mm), 't' and 'z' in either case.
CreationTime CreationTime::parse(std::string_view text) noexcept {
    const CreationTime unreadable;
    TextReader in(text);
    const auto year = in.number(4);
    const bool dash1 = in.one_of("-");
    const auto month = in.number(2);
    const bool dash2 = in.one_of("-");
    const auto day = in.number(2);
    const bool t = in.one_of("Tt");
    const auto hour = in.number(2);
    const bool colon1 = in.one_of(":");
    const auto minute = in.number(2);
    const bool colon2 = in.one_of(":");
    const auto second = in.number(2);
    if (!year || !dash1 || !month || !dash2 || !day || !t || !hour || !colon1 || !minute || !colon2 ||
        !second) {
        return unreadable;
    }
    const std::chrono::year_month_day date(std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day)));
    // 60 is a leap second.
    if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
        return unreadable;
    }
    uint32_t nanoseconds = 0;
    if (in.one_of(".")) {
        uint32_t unit = 100'000'000;
        size_t digits = 0;
        while (const auto digit = in.number(1)) {
            nanoseconds += static_cast<uint32_t>(*digit) * unit;
            unit /= 10;
            ++digits;
        }
        if (digits == 0) {
            return unreadable;
        }
    }
    if (!in.one_of("Zz+-")) {
        return unreadable;
    }
    int64_t offset_minutes = 0;
    if (in.last() == '+' || in.last() == '-') {
        const bool east = in.last() == '+';
        const auto offset_hour = in.number(2);
        const bool colon = in.one_of(":");
        const auto offset_minute = in.number(2);
        if (!offset_hour || !colon || !offset_minute || *offset_hour > 23 || *offset_minute > 59) {
            return unreadable;
        }
        offset_minutes = (east ? 1 : -1) * (*offset_hour * 60 + *offset_minute);
    }
    if (!in.at_end()) {
        return unreadable;
    }
    const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    return {.unknown = false,
            .seconds = ((days * 24 + *hour) * 60 + *minute - offset_minutes) * 60 + *second,
            .nanoseconds = nanoseconds};
}

std::string Contender::to_string() const {
    return service.namespace_name + "/" + service.name + " (" +
           (port_index == kHealthCheckIndex ? "healthCheckNodePort" : class_name(cls)) + ")";
}

void FrontendOwners::lay(const Claim& claim) {
    std::set<Contender>& contenders = contenders_[claim.tuple];
    const auto own = contenders.insert(claim.contender).first;
    if (own == contenders.begin() && contenders.size() > 1) {
        contested_.push_back(claim.tuple);
    }
    if (is_vip(claim.contender.cls) && vips_.add(claim.tuple.address)) {
        changed_vips_.push_back(claim.tuple.address);
    }
}

void FrontendOwners::withdraw(const Claim& claim) {
    const auto found = contenders_.find(claim.tuple);
    std::set<Contender>& contenders = found->second;
    const auto own = contenders.find(claim.contender);
    const bool owned = own == contenders.begin();
    contenders.erase(own);
    if (contenders.empty()) {
        contenders_.erase(found);
    } else if (owned) {
        contested_.push_back(claim.tuple);
    }
    if (is_vip(claim.contender.cls) && vips_.remove(claim.tuple.address)) {
        changed_vips_.push_back(claim.tuple.address);
    }
}

void FrontendOwners::replace(const std::vector<Claim>& old, const std::vector<Claim>& now) {
    std::vector<Claim> only;
    std::ranges::set_difference(old, now, std::back_inserter(only));
    for (const Claim& claim : only) {
        withdraw(claim);
    }
    only.clear();
    std::ranges::set_difference(now, old, std::back_inserter(only));
    for (const Claim& claim : only) {
        lay(claim);
    }
}

const Contender* FrontendOwners::owner_of(const FrontendTuple& tuple) const {
    const auto found = contenders_.find(tuple);
    return found == contenders_.end() ? nullptr : &*found->second.begin();
}

std::set<kube::ObjectName> FrontendOwners::take_contending_services() {
    std::set<kube::ObjectName> services;
    std::ranges::sort(contested_);
    const auto [first, last] = std::ranges::unique(contested_);
    contested_.erase(first, last);
    for (const FrontendTuple& tuple : contested_) {
        if (const auto found = contenders_.find(tuple); found != contenders_.end()) {
            for (const Contender& contender : found->second) {
                services.insert(contender.service);
            }
        }
    }
    contested_.clear();
    return services;
}

}  // namespace penstock::semantics
