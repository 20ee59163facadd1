// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/upgrade_record.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "control/gateway/upgrade/step_names.hpp"

namespace penstock::gateway {
namespace {

// protobuf rejects text that is no UTF-8, and a terminal obeys control characters.
std::string printable(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
    return out;
}

std::string ms_text(uint64_t us) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f", static_cast<double>(us) / 1000);
    return text.data();
}

}  // namespace

uint64_t monotonic_us(std::chrono::steady_clock::time_point time) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

UpgradeSteps::Event progress_of(const v1::UpgradeNote& note) {
    const bool forwards = std::ranges::any_of(
        note.steps(), [](const v1::UpgradeStep& step) { return step.name() == step::kForwards; });
    return forwards ? UpgradeSteps::Event::Launched : UpgradeSteps::Event::Progress;
}

void UpgradeRecord::begin(const std::string& binary, const std::string& requested_by, Clock::time_point now) {
    v1::Upgrade next;
    next.set_number(upgrade_.number() + 1);
    next.set_done(upgrade_.done());
    next.set_failed(upgrade_.failed());
    next.set_state(v1::Upgrade::STATE_RUNNING);
    next.set_binary(printable(binary));
    next.set_requested_by(printable(requested_by));
    upgrade_ = std::move(next);
    troubles_.clear();
    began_us_ = since_us_ = monotonic_us(now);
}

void UpgradeRecord::add_step(const std::string& name, Clock::time_point at) {
    v1::UpgradeStep& step = *upgrade_.add_steps();
    step.set_name(name);
    step.set_at_us(monotonic_us(at));
}

void UpgradeRecord::add(const v1::UpgradeNote& note) {
    if (!is_running()) {
        return;
    }
    upgrade_.mutable_steps()->MergeFrom(note.steps());
    if (!note.version().empty()) {
        upgrade_.set_version(note.version());
    }
}

void UpgradeRecord::note_trouble(const std::string& what) {
    if (is_running()) {
        troubles_.push_back(what);
    }
}

void UpgradeRecord::end(v1::Upgrade::State state, Clock::time_point now) {
    upgrade_.set_state(state);
    since_us_ = monotonic_us(now);
}

void UpgradeRecord::succeed(Clock::time_point now) {
    upgrade_.set_pause_us(pause_us());
    upgrade_.set_done(upgrade_.done() + 1);
    end(v1::Upgrade::STATE_DONE, now);
}

void UpgradeRecord::fail(const std::deque<std::string>& last_lines, Clock::time_point now) {
    std::string why;
    for (const std::string& trouble : troubles_) {
        why += (why.empty() ? "" : "; ") + printable(trouble);
    }
    upgrade_.set_why(why);
    for (const std::string& line : last_lines) {
        upgrade_.add_last_lines(printable(line));
    }
    upgrade_.set_failed(upgrade_.failed() + 1);
    end(v1::Upgrade::STATE_FAILED, now);
}

uint64_t UpgradeRecord::pause_us() const {
    const auto at_us = [&](const char* name) -> uint64_t {
        const auto found = std::ranges::find(upgrade_.steps(), name, &v1::UpgradeStep::name);
        return found == upgrade_.steps().end() ? 0 : found->at_us();
    };
    // A former process that was killed has not reported when its workers stopped: at the order at the
    // earliest. Without an order it has forwarded until its end.
    uint64_t begin = 0;
    for (const char* name : {step::kWorkersStopped, step::kAskedToHandOver, step::kFormerEnded}) {
        begin = begin == 0 ? at_us(name) : begin;
    }
    const uint64_t end = at_us(step::kForwards);
    return begin != 0 && end > begin ? end - begin : 0;
}

v1::UpgradeNote UpgradeRecord::note() const {
    v1::UpgradeNote out;
    out.set_since_us(since_us_);
    *out.mutable_record() = upgrade_;
    auto& steps = *out.mutable_record()->mutable_steps();
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto& one, const auto& other) { return one.at_us() < other.at_us(); });
    for (v1::UpgradeStep& step : steps) {
        step.set_at_us(step.at_us() - std::min(began_us_, step.at_us()));
    }
    return out;
}

std::string UpgradeRecord::summary() const {
    const v1::UpgradeNote all = note();
    const v1::Upgrade& upgrade = all.record();
    std::string text = "upgrade " + std::to_string(upgrade.number()) + " of " + upgrade.binary();
    if (upgrade.state() == v1::Upgrade::STATE_DONE) {
        text += " is done, the pause was " + ms_text(upgrade.pause_us()) + " ms";
    } else {
        text += " has failed";
    }
    text += "; ms since its request:";
    for (const v1::UpgradeStep& step : upgrade.steps()) {
        text += (&step == &upgrade.steps(0) ? " " : ", ") + step.name() + " " + ms_text(step.at_us());
    }
    return text;
}

}  // namespace penstock::gateway
