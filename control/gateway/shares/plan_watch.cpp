// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/plan_watch.hpp"

#include <optional>
#include <utility>

#include "control/base/whole_file.hpp"
#include "control/log/log.hpp"
#include "control/shares/plan_text.hpp"

namespace penstock::gateway {

std::string why_not_newer(const shares::Plan& now, const shares::Plan& next) {
    if (next.version > now.version || next == now) {
        return "";
    }
    const std::string version = "version " + std::to_string(next.version);
    return next.version == now.version
               ? version + " is in force with another content: raise the number with each change"
               : version + " is older than version " + std::to_string(now.version) + ", which is in force";
}

Result<std::unique_ptr<PlanWatch>> PlanWatch::open(Options options) {
    std::unique_ptr<PlanWatch> watch(new PlanWatch(std::move(options)));
    std::optional<shares::Plan> saved;
    if (const std::string& path = watch->options_.saved; !path.empty()) {
        const auto text = shares::read_plan_text(path);
        auto plan = text ? watch->parse(*text) : std::unexpected(text.error());
        if (plan) {
            saved = std::move(*plan);
        } else if (plan.error().code != Errc::NotFound) {
            log::get("control").warn("the saved plan of shares cannot be used: {}",
                                     text ? path + ": " + plan.error().what : plan.error().what);
        }
    }
    const auto text = shares::read_plan_text(watch->options_.file);
    auto plan = text ? watch->parse(*text) : std::unexpected(text.error());
    if (!plan && text) {
        plan = in_context(watch->options_.file.string(), plan.error());
    }
    if (!plan && !saved) {
        return std::unexpected(plan.error());
    }
    watch->seen_ = text.value_or("");
    const std::string old = plan && saved ? why_not_newer(*saved, *plan) : std::string();
    if (plan && old.empty()) {
        watch->put_in_force(std::move(*plan));
        watch->save(*text);
    } else {
        watch->put_in_force(std::move(*saved));
        watch->note(plan ? watch->options_.file.string() + ": " + old : plan.error().what,
                    FileFollower::Report::Changes);
    }
    return watch;
}

PlanWatch::~PlanWatch() {
    follower_.reset();
}

Status PlanWatch::start(OnChange on_change) {
    on_change_ = std::move(on_change);
    PENSTOCK_TRY(follower_,
                 FileFollower::start(options_.file, [this](FileFollower::Report report) { look(report); }));
    return {};
}

void PlanWatch::reload() {
    if (follower_) {
        follower_->reload();
    }
}

std::shared_ptr<const GatewayShares> PlanWatch::shares() const {
    const std::lock_guard lock(mutex_);
    return shares_;
}

std::string PlanWatch::fault() const {
    const std::lock_guard lock(mutex_);
    return fault_.empty() ? save_fault_ : fault_;
}

Result<shares::Plan> PlanWatch::parse(const std::string& text) const {
    PENSTOCK_TRY(shares::Plan plan, shares::parse_plan(text));
    if (const std::string obstacle = options_.obstacle ? options_.obstacle(plan) : ""; !obstacle.empty()) {
        return fail(Errc::InvalidArgument, obstacle);
    }
    return plan;
}

void PlanWatch::look(FileFollower::Report report) {
    const auto text = shares::read_plan_text(options_.file);
    if (!text) {
        return note(text.error().what, report);
    }
    // The file is read again every 30 s, also if no event has reported a change.
    if (*text == seen_ && report == FileFollower::Report::Changes && fault().empty()) {
        return;
    }
    seen_ = *text;
    const auto plan = parse(*text);
    const std::string old = plan ? why_not_newer(shares()->plan(), *plan) : std::string();
    if (!plan || !old.empty()) {
        return note(options_.file.string() + ": " + (plan ? old : plan.error().what), report);
    }
    note("", report);
    if (*plan == shares()->plan()) {
        if (is_unsaved()) {
            save(*text);
        }
        if (report == FileFollower::Report::Always) {
            log::get("control").info("plan of shares, unchanged, {}", roles_text(*shares()));
        }
        return;
    }
    put_in_force(*plan);
    save(*text);
    on_change_(shares());
}

void PlanWatch::put_in_force(shares::Plan plan) {
    auto next = std::make_shared<const GatewayShares>(std::move(plan), options_.gateway_name);
    auto& logger = log::get("control");
    logger.info("plan of shares, {}", roles_text(*next));
    if (next->plan().gateway(options_.gateway_name) == nullptr) {
        logger.warn("gateway {} is not in the plan of shares: it announces no VIP", options_.gateway_name);
    }
    const std::lock_guard lock(mutex_);
    shares_ = std::move(next);
}

bool PlanWatch::is_unsaved() const {
    const std::lock_guard lock(mutex_);
    return !save_fault_.empty();
}

void PlanWatch::save(const std::string& text) {
    if (options_.saved.empty()) {
        return;
    }
    const auto saved = replace_file(options_.saved, text);
    if (!saved) {
        log::get("control").warn("the plan of shares is not saved: {}", saved.error().what);
    }
    const std::lock_guard lock(mutex_);
    save_fault_ = saved ? "" : "not saved: " + saved.error().what;
}

void PlanWatch::note(const std::string& fault, FileFollower::Report report) {
    std::string former;
    {
        const std::lock_guard lock(mutex_);
        former = std::exchange(fault_, fault);
    }
    auto& logger = log::get("control");
    if (!fault.empty() && (report == FileFollower::Report::Always || fault != former)) {
        logger.error("the plan of shares is unchanged: {}", fault);
    } else if (fault.empty() && !former.empty()) {
        logger.info("{} is well again", options_.file.string());
    }
}

}  // namespace penstock::gateway
