// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/address_writer.hpp"

#include <algorithm>
#include <utility>

#include "control/sync/addresses/refusal_report.hpp"

namespace penstock::sync {
namespace {

// The addresses that the status shows already.
std::set<std::string> shown_by(const kube::Service& service) {
    std::set<std::string> shown;
    for (const kube::LoadBalancerIngress& ingress : service.ingress) {
        if (const auto address = IpAddr::parse(ingress.ip)) {
            shown.insert(address->to_string());
        }
    }
    return shown;
}

// The status shows all that the Service can have. Other Services may get an address from a late write of a
// former leader, also those that this process refuses: the former leader may have had other pools.
bool is_complete(const ipam::Allocation& allocation, const kube::Service& service) {
    const auto shown = shown_by(service);
    return !allocation.refusal && kube::has_marker(service) &&
           std::ranges::all_of(allocation.addresses, [&](const ipam::AllocatedAddress& each) {
               return shown.contains(each.address.to_string());
           });
}

}  // namespace

AddressWriter::AddressWriter(Settings settings, kube::Transport& transport, kube::WriteLimiter& limiter,
                             Calls calls, const kube::RandomSource& random)
    : settings_(std::move(settings)),
      calls_(std::move(calls)),
      assignment_(settings_.assignment),
      board_(calls_.wake),
      elector_(settings_.election, transport, limiter, random),
      services_(
          transport, limiter,
          {.read = calls_.service, .may_write = [this] { return may_write(); }, .report = calls_.report},
          random),
      pools_(transport, limiter,
             {.read = calls_.pool, .may_write = [this] { return may_write() && phase_ == Phase::Assigning; }},
             random) {
    assignment_.stop();
    publish();
}

void AddressWriter::note(const kube::Changes& changes) {
    assignment_.note(changes);
    for (const auto& [name, service] : changes.services) {
        services_.object_changed(name);
        noted_.insert(name);
    }
    for (const auto& [name, pool] : changes.pools) {
        pool == nullptr ? pools_.forget(name) : pools_.object_changed(name);
    }
    sources_changed_ |= !changes.services.empty() || !changes.pools.empty() || !changes.namespaces.empty() ||
                        changes.pools_listed || changes.namespaces_listed || !changes.held_addresses.empty();
}

void AddressWriter::advance(Time now, WallTime wall) {
    elector_.advance(now, wall);
    follow_election(now);
    if (phase_ == Phase::Refreshing && assignment_.is_ready() && calls_.is_relisted() &&
        calls_.has_other_gateways()) {
        fence_everything();
        fence_until_ = now + kFenceMax;
    }
    if (phase_ == Phase::Fencing) {
        fence_changes();
        services_.advance(now, wall);  // counts() contains what was set in this round
        if (services_.counts().pending == 0 || now >= fence_until_) {
            assign_everything();
        }
    }
    if (phase_ == Phase::Assigning) {
        assign_changes();
    } else {
        static_cast<void>(board_.take_changed());  // assign_everything() reads the board as a whole
    }
    noted_.clear();
    services_.advance(now, wall);
    pools_.advance(now, wall);
    follow_release(now, wall);
    publish();
}

void AddressWriter::release() {
    is_releasing_ = true;
    services_.finish();
    pools_.finish();
}

void AddressWriter::follow_release(Time now, WallTime wall) {
    if (!is_releasing_ || services_.has_writes() || pools_.has_writes()) {
        return;
    }
    is_releasing_ = false;
    if (services_.is_settled(now) && pools_.is_settled(now)) {
        elector_.release();
        elector_.advance(now, wall);
    } else {
        leaves_lease_ = true;
        log_.info("the Lease is not released and expires: a write of status has no answer");
    }
}

std::optional<AddressWriter::Time> AddressWriter::next_wake() const {
    std::optional<Time> due;
    for (const auto& each : {elector_.next_wake(), services_.next_wake(), pools_.next_wake()}) {
        if (each) {
            due = std::min(*each, due.value_or(*each));
        }
    }
    return due;
}

void AddressWriter::follow_election(Time now) {
    const bool is_leader = elector_.is_leader(now);
    const bool is_new_term = is_leader && (elector_.term() != term_ || phase_ == Phase::Following);
    if (is_new_term || (!is_leader && phase_ != Phase::Following)) {
        // Decisions of the former term are outdated: another process may have decided since.
        services_.reset();
        pools_.reset();
        written_.clear();
        assignment_.stop();
        phase_ = Phase::Following;
    }
    if (is_new_term) {
        term_ = elector_.term();
        phase_ = Phase::Refreshing;
        calls_.relist();
    }
}

// A write in a round in which this process has just become the leader again would be of its former term.
bool AddressWriter::may_write() const {
    return (phase_ == Phase::Fencing || phase_ == Phase::Assigning) && elector_.is_leader(calls_.clock());
}

// The view is complete as of this term.
void AddressWriter::fence_everything() {
    phase_ = Phase::Fencing;
    assignment_.restart();
    static_cast<void>(assignment_.run());
    sources_changed_ = false;
    noted_.clear();
    for (const kube::ObjectName& name : assignment_.followed()) {
        fence(name);
    }
}

// A late write of a former leader that was executed first is seen here, and its address is kept.
void AddressWriter::fence_changes() {
    if (!std::exchange(sources_changed_, false)) {
        return;
    }
    const auto changed = assignment_.run();
    noted_.insert(changed.begin(), changed.end());
    for (const kube::ObjectName& name : std::exchange(noted_, {})) {
        fence(name);
    }
}

void AddressWriter::fence(const kube::ObjectName& name) {
    const ipam::Allocation* allocation = assignment_.allocation_of(name);
    const kube::Service* service = assignment_.find(name);
    if (allocation == nullptr || service == nullptr) {
        clear(name);
        return;
    }
    kube::ServiceStatus status = kube::status_of(*service);
    if (!is_complete(*allocation, *service)) {
        std::erase_if(status.conditions, [](const kube::Condition& condition) {
            return condition.type == kube::kAllocatedCondition;
        });
        status.conditions.push_back({.type = std::string(kube::kAllocatedCondition),
                                     .status = kube::has_marker(*service) ? "True" : "False",
                                     .reason = "Pending",
                                     .message = settings_.election.identity +
                                                " evaluates the Service (term " + std::to_string(term_) +
                                                ")"});
    }
    set(name, std::move(status));
}

void AddressWriter::set(const kube::ObjectName& name, kube::ServiceStatus status) {
    written_.insert(name);
    services_.set(name, std::move(status));
}

void AddressWriter::clear(const kube::ObjectName& name) {
    const kube::Service* service = assignment_.find(name);
    if (written_.erase(name) != 0 || (service != nullptr && !kube::status_of(*service).conditions.empty())) {
        services_.clear(name);
    }
}

void AddressWriter::assign_everything() {
    phase_ = Phase::Assigning;
    reported_.clear();
    assignment_.restart();
    static_cast<void>(assignment_.run());
    for (const kube::ObjectName& name : assignment_.followed()) {
        assign(name);
    }
    static_cast<void>(board_.take_changed());
    view_is_stale_ = true;
    write_pools();
    sources_changed_ = false;
}

void AddressWriter::assign_changes() {
    if (std::exchange(sources_changed_, false)) {
        const auto changed = assignment_.run();
        // The status also lists the ports of a Service, which change without its allocation.
        noted_.insert(changed.begin(), changed.end());
        for (const kube::ObjectName& name : std::exchange(noted_, {})) {
            assign(name);
        }
        view_is_stale_ = true;
        write_pools();
    }
    for (const kube::ObjectName& name : board_.take_changed()) {
        if (assignment_.allocation_of(name) != nullptr) {
            assign(name);
        } else {
            board_.forget(name);  // a gateway reports that a deleted Service is not served
        }
    }
}

void AddressWriter::assign(const kube::ObjectName& name) {
    auto status = assignment_.status_of(name);
    if (!status) {
        clear(name);
        board_.forget(name);
        reported_.erase(name);
        return;
    }
    // A condition from before a restart, or of another leader, stays until the gateways have reported.
    std::vector<kube::Condition> former;
    if (const kube::Service* service = assignment_.find(name)) {
        std::ranges::copy_if(
            service->conditions, std::back_inserter(former),
            [](const kube::Condition& each) { return each.type == kube::kProgrammedCondition; });
    }
    if (const auto gateways = board_.gateways_of(name);
        gateways && (former.empty() || board_.is_complete(name))) {
        status->conditions.push_back(programmed_condition(*gateways));
    } else {
        std::ranges::move(former, std::back_inserter(status->conditions));
    }
    set(name, std::move(*status));
    report(name, *assignment_.allocation_of(name));
}

void AddressWriter::report(const kube::ObjectName& name, const ipam::Allocation& allocation) {
    auto refusal = refusal_of(allocation);
    if (!refusal) {
        reported_.erase(name);
        return;
    }
    if (std::string& known = reported_[name]; known != refusal->message) {
        known = refusal->message;
        log_.warn("service " + name.namespace_name + "/" + name.name + ": " + refusal->reason + ": " +
                  refusal->message);
        calls_.report({.kind = "Service",
                       .object = name,
                       .type = kube::Event::Type::Warning,
                       .reason = std::move(refusal->reason),
                       .message = std::move(refusal->message),
                       .reporter = {}});
    }
}

void AddressWriter::write_pools() {
    if (assignment_.pools_refused() != pools_refused_) {
        pools_refused_ = assignment_.pools_refused();
        pools_refused_.empty()
            ? log_.info("the address pools are valid again")
            : log_.warn("address pools refused, the last valid ones stay in use: " + pools_refused_);
    }
    for (const auto& [name, status] : assignment_.pool_statuses()) {
        pools_.set(name, status);
    }
}

std::vector<kube::LogLine> AddressWriter::take_log() {
    std::vector<kube::LogLine> lines = elector_.take_log();
    for (kube::LogLine& line : log_.take()) {
        lines.push_back(std::move(line));
    }
    return lines;
}

void AddressWriter::publish() {
    kube::WriteStatus writes{.leadership = elector_.status(),
                             .services = services_.counts(),
                             .pools = pools_.counts(),
                             .foreign = services_.foreign()};
    const std::string phase = !assignment_.is_ready()       ? "waiting"
                              : phase_ == Phase::Following  ? "following"
                              : phase_ == Phase::Refreshing ? "refreshing"
                              : phase_ == Phase::Fencing    ? "fencing"
                                                            : "assigning";
    std::optional<AddressStatus> anew;
    if (std::exchange(view_is_stale_, false)) {
        anew = address_status_of(assignment_);
    }
    const std::lock_guard lock(mutex_);
    if (anew) {
        status_ = std::move(*anew);
    }
    status_.phase = phase;
    status_.writes = std::move(writes);
}

AddressStatus AddressWriter::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

}  // namespace penstock::sync
