// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/gateway_reports.hpp"

#include <algorithm>
#include <utility>

#include "control/kube/events/json_text.hpp"
#include "control/kube/json/json_fields.hpp"

namespace penstock::sync {
namespace {

// An object with all annotations that it has room for, and managedFields.
constexpr size_t kResponseBytesMax = size_t{2} << 20;
// A report without room is left as it is for a while: after a start, each Service is an exception until the
// gateway has confirmed it.
constexpr std::chrono::seconds kLongReportMax{30};

bool has_address(const kube::Service& service) {
    return service.type == "LoadBalancer" && kube::has_marker(service) && !service.ingress.empty();
}

// Equal apart from the beat.
bool is_same(const GatewayReport& a, const GatewayReport& b) {
    return a.seen == b.seen && a.not_served == b.not_served;
}

}  // namespace

GatewayReports::GatewayReports(Settings settings, kube::Transport& transport, kube::WriteLimiter& limiter,
                               ProgrammedBoard& board, Read read)
    : settings_(std::move(settings)),
      lease_{.namespace_name = settings_.lease.namespace_name, .name = settings_.lease.name + "-gateways"},
      transport_(transport),
      limiter_(limiter),
      board_(board),
      read_(std::move(read)),
      response_(kResponseBytesMax) {}

GatewayReports::~GatewayReports() {
    if (request_) {
        transport_.cancel(*request_);
    }
}

void GatewayReports::note(const kube::Changes& changes) {
    for (const auto& [name, service] : changes.services) {
        const bool was_known = services_.erase(name) != 0;
        if (service == nullptr || (service->type != "LoadBalancer" && !was_known)) {
            continue;
        }
        const auto stored = read_(name);
        const auto version = stored ? version_number(stored->resource_version) : std::nullopt;
        if (!version) {
            has_versions_ = has_versions_ && !stored;
            continue;
        }
        seen_ = std::max(seen_, *version);
        if (has_address(*service)) {
            services_.insert_or_assign(name, *version);
        }
        if (is_leader_) {
            changed_.insert(name);
        }
        own_changed_ = true;
    }
}

void GatewayReports::advance(Time now, kube::WallTime wall, bool is_leader) {
    sent_at_ = now;
    if (std::exchange(is_leader_, is_leader) != is_leader) {
        has_read_ = false;
        awaited_until_ = now + kReportsAwaited;
        if (is_leader) {
            next_round_ = std::min(next_round_, now);
        } else {
            others_.clear();
            board_.set_others({});
        }
    }
    if (request_ && response_.is_complete()) {
        request_.reset();
        process_response(now, wall);
    }
    drop_old(now);
    if (is_leader_ && has_read_) {
        apply_to_board();
    }
    if (!request_ && now >= next_round_ && now >= limiter_.next_at(kube::WriteLane::Lease)) {
        start_round(now, wall);
    }
}

void GatewayReports::start_round(Time now, kube::WallTime wall) {
    next_round_ = now + kReportPeriod;
    if (!has_versions_) {
        return refuse("the API server's resourceVersions are no numbers", now);
    }
    if (write_own(now, wall)) {
        return;
    }
    if (is_leader_) {
        send(Step::Read,
             {.target = kube::lease_target(lease_.namespace_name, lease_.name), .timeout = kReportTimeout});
    }
}

bool GatewayReports::write_own(Time now, kube::WallTime wall) {
    const uint64_t own_version = board_.own_version();
    const bool is_beat = !written_.empty() && now >= written_at_ + kReportBeat;
    if (!is_beat && long_since_.empty() && !own_changed_ && own_version == own_version_) {
        return false;
    }
    own_changed_ = false;
    own_version_ = own_version;
    auto reports = own_reports(now);
    for (const auto& [gateway, report] : written_) {
        if (!reports.contains(gateway)) {
            remove(report);
            return true;
        }
    }
    const auto is_equal = [](const auto& a, const auto& b) {
        return a.first == b.first && is_same(a.second, b.second);
    };
    if (reports.empty() || (!is_beat && std::ranges::equal(reports, written_, is_equal))) {
        return false;
    }
    // Differs from the number of the former process with these gateways, which began anew as well.
    const auto beat = static_cast<uint64_t>(wall.time_since_epoch() / std::chrono::seconds(1)) + ++beat_;
    std::string annotations;
    for (auto& [gateway, report] : reports) {
        report.beat = beat;
        std::string member = "{";
        kube::add_text(member, "", *report_text(report));
        annotations += (annotations.empty() ? "\"" : ",\"") + report_key(gateway) + "\"" +
                       member.substr(member.find(':'));
    }
    sent_ = std::move(reports);
    written_at_ = now;
    send(Step::Write, {.method = "PATCH",
                       .target = kube::lease_target(lease_.namespace_name, lease_.name),
                       .body = "{\"metadata\":{\"annotations\":{" + annotations + "}}}",
                       .content_type = "application/merge-patch+json",
                       .timeout = kReportTimeout});
    return true;
}

// The test and the removal are one operation of the server.
void GatewayReports::remove(const GatewayReport& report) {
    removed_ = report.gateway;
    std::string path = report_key(report.gateway);
    path.replace(path.find('/'), 1, "~1");
    path = "/metadata/annotations/" + path;
    std::string body = "[{\"op\":\"test\"";
    kube::add_text(body, "path", path);
    kube::add_text(body, "value", *report_text(report));
    body += "},{\"op\":\"remove\"";
    kube::add_text(body, "path", path);
    send(Step::Remove, {.method = "PATCH",
                        .target = kube::lease_target(lease_.namespace_name, lease_.name),
                        .body = body + "}]",
                        .content_type = "application/json-patch+json",
                        .timeout = kReportTimeout});
}

std::map<std::string, GatewayReport> GatewayReports::own_reports(Time now) {
    std::vector<kube::ObjectName> names;
    names.reserve(services_.size());
    for (const auto& [name, version] : services_) {
        names.push_back(name);
    }
    std::map<std::string, GatewayReport> reports;
    for (const std::string& gateway : board_.own_gateways()) {
        auto lacking = board_.not_served_by(gateway, names);
        GatewayReport report{
            .gateway = gateway, .seen = seen_, .beat = 0, .not_served = {lacking.begin(), lacking.end()}};
        if (report_text(report)) {
            long_since_.erase(gateway);
            reports.emplace(gateway, std::move(report));
            continue;
        }
        const Time since = long_since_.try_emplace(gateway, now).first->second;
        const auto known = written_.find(gateway);
        if (now < since + kLongReportMax) {
            // Covers no Service unless a former report does.
            reports.emplace(gateway,
                            known != written_.end()
                                ? known->second
                                : GatewayReport{.gateway = gateway, .seen = 0, .beat = 0, .not_served = {}});
        } else if (known != written_.end()) {
            log_.warn("gateway " + gateway + " does not serve " + std::to_string(lacking.size()) +
                      " Services, too many for its report: it is not counted in the condition Programmed");
        }
    }
    return reports;
}

void GatewayReports::send(Step step, kube::Request request) {
    static_cast<void>(limiter_.take(kube::WriteLane::Lease, sent_at_));
    step_ = step;
    response_.reset();
    request_ = transport_.start(std::move(request), response_);
}

void GatewayReports::process_response(Time now, kube::WallTime wall) {
    if (response_.status() == 401) {
        transport_.credentials_rejected();
    }
    if (response_.is_success()) {
        if (!std::exchange(refused_why_, {}).empty()) {
            log_.info("the state of gateways is exchanged again");
        }
        if (step_ == Step::Write) {
            written_ = std::exchange(sent_, {});
        } else if (step_ == Step::Remove) {
            written_.erase(removed_);
            own_changed_ = true;
        } else if (step_ == Step::Create) {
            own_changed_ = true;
            next_round_ = now;
        }
        return process_annotations(now);
    }
    if (step_ == Step::Remove && (response_.status() == 422 || response_.status() == 404)) {
        written_.erase(removed_);  // another process reports on this gateway, or there is nothing to remove
        own_changed_ = true;
        return;
    }
    if (response_.status() == 404 && step_ != Step::Create) {
        written_.clear();
        return send(Step::Create, {.method = "POST",
                                   .target = kube::lease_target(lease_.namespace_name),
                                   .body = kube::lease_create_body(lease_, settings_.identity, wall),
                                   .content_type = "application/json",
                                   .timeout = kReportTimeout});
    }
    if (response_.may_work_later() || response_.status() == 409) {
        own_changed_ = true;  // a write may have been executed: it is repeated
        return;
    }
    refuse(response_.what(), now);
}

void GatewayReports::refuse(const std::string& why, Time now) {
    next_round_ = now + kReportRefusedPause;
    has_read_ = own_changed_ = true;
    if (std::exchange(refused_why_, why) != why) {
        log_.warn("the Lease " + lease_.namespace_name + "/" + lease_.name +
                  " cannot be used, and the condition Programmed covers the leader's gateways only: " +
                  transport_.without_secrets(why));
    }
}

void GatewayReports::process_annotations(Time now) {
    if (!is_leader_) {
        return;
    }
    if (!tree_.parse(response_.body())) {
        return;
    }
    kube::FaultList faults;
    const kube::JsonFields object(tree_, 0, faults);
    std::set<std::string> own;
    for (const std::string& gateway : board_.own_gateways()) {
        own.insert(report_key(gateway));
    }
    std::set<std::string> found;
    object.mapping("metadata").each_entry("annotations", [&](std::string_view key, std::string_view text) {
        if (!key.starts_with(kReportPrefix) || own.contains(std::string(key))) {
            return;
        }
        auto report = parse_report(text);
        if (!report || report_key(report->gateway) != key) {
            return;
        }
        Other& other = others_[report->gateway];
        found.insert(report->gateway);
        if (other.text != text) {
            other.is_applied = other.is_applied && is_same(other.report, *report);
            other.text = text;
            other.report = std::move(*report);
            other.since = now;
        }
    });
    std::erase_if(others_, [&](const auto& each) { return !found.contains(each.first); });
    has_read_ = true;
}

// The text of a process that is gone stays, and does not count. A text of which the age is unknown counts as
// new: a new leader does not remove the gateways of others.
void GatewayReports::drop_old(Time now) {
    std::set<std::string> fresh;
    for (auto& [gateway, other] : others_) {
        other.is_old = now >= other.since + kReportAgeMax;
        if (!other.is_old) {
            fresh.insert(gateway);
        }
    }
    board_.set_others(std::move(fresh));
}

void GatewayReports::apply_to_board() {
    const auto changed = std::exchange(changed_, {});
    const auto own = board_.own_gateways();
    for (auto& [gateway, other] : others_) {
        const auto apply = [&](const kube::ObjectName& name, uint64_t version) {
            if (const auto is_served = other.report.serves(name, version)) {
                board_.report_other(gateway, name, *is_served);
            }
        };
        if (std::ranges::find(own, gateway) != own.end() || other.is_old) {
            other.is_applied = false;
        } else if (!std::exchange(other.is_applied, true)) {
            for (const auto& [name, version] : services_) {
                apply(name, version);
            }
        } else {
            for (const kube::ObjectName& name : changed) {
                if (const auto service = services_.find(name); service != services_.end()) {
                    apply(name, service->second);
                }
            }
        }
    }
}

std::optional<GatewayReports::Time> GatewayReports::next_wake() const {
    return request_ ? std::nullopt
                    : std::optional(std::max(next_round_, limiter_.next_at(kube::WriteLane::Lease)));
}

}  // namespace penstock::sync
