// SPDX-License-Identifier: Apache-2.0
#include "control/tls/watch.hpp"

#include <spdlog/fmt/chrono.h>

#include <utility>

#include "control/log/log.hpp"

namespace penstock::tls {
namespace {

// "2026-11-23T06:00:00Z"
std::string date_of(Material::Time time) {
    return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

}  // namespace

Watch::Watch(WatchOptions options) : options_(std::move(options)) {
    if (auto material = read_material(options_.files, options_.names)) {
        current_ = std::make_shared<const Material>(std::move(*material));
        if (options_.on_change) {
            options_.on_change(*current_);
        }
    } else {
        error_ = material.error().what;
    }
    thread_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
}

Watch::~Watch() = default;

std::shared_ptr<const Material> Watch::current() const {
    const std::lock_guard lock(mutex_);
    return current_;
}

std::string Watch::error() const {
    const std::lock_guard lock(mutex_);
    return error_;
}

void Watch::reload() {
    {
        const std::lock_guard lock(mutex_);
        reload_ = true;
    }
    wake_.notify_all();
}

void Watch::run(const std::stop_token& stopped) {
    look_at_expiry();
    for (;;) {
        auto report = Report::Changes;
        {
            std::unique_lock lock(mutex_);
            wake_.wait_for(lock, stopped, options_.period, [this] { return reload_; });
            report = std::exchange(reload_, false) ? Report::Always : Report::Changes;
        }
        if (stopped.stop_requested()) {
            return;
        }
        look(report);
        look_at_expiry();
    }
}

// Reading three small files per second costs less than inotify watches on all folders and links on their
// paths.
void Watch::look(Report report) {
    auto& logger = log::get(options_.logger);
    auto material = read_material(options_.files, options_.names);
    if (!material) {
        const std::string& what = material.error().what;
        bool is_lasting = false;
        {
            const std::lock_guard lock(mutex_);
            is_lasting = std::exchange(error_, what) == what;
        }
        if (report == Report::Always || (is_lasting && logged_error_ != what)) {
            logged_error_ = what;
            logger.error("TLS files: {}; {}", what,
                         current() ? "the previous ones stay in use" : "no earlier ones to use");
        }
        return;
    }
    std::shared_ptr<const Material> next;
    {
        const std::lock_guard lock(mutex_);
        error_.clear();
        if (!current_ || *current_ != *material) {
            next = std::make_shared<const Material>(std::move(*material));
            current_ = next;
        }
    }
    const bool was_broken = !std::exchange(logged_error_, {}).empty();
    if (next) {
        if (options_.on_change) {
            options_.on_change(*next);
        }
        logger.info("TLS files reloaded: certificate {} is valid until {}; new connections use it",
                    next->subject, date_of(next->expires));
    } else if (was_broken || report == Report::Always) {
        const auto same = current();
        logger.info("TLS files: unchanged, certificate {} is valid until {}", same->subject,
                    date_of(same->expires));
    }
}

void Watch::look_at_expiry() {
    const auto material = current();
    if (!material) {
        return;
    }
    const auto now = std::chrono::system_clock::now();
    const auto log_due = [&](ExpiryNotice& notice, Material::Time from, Material::Time expires,
                             const std::string& what) {
        if (const auto due = notice.due(now, from, expires)) {
            const bool expired = *due == ExpiryNotice::What::Expired;
            log::get(options_.logger)
                .log(expired ? spdlog::level::err : spdlog::level::warn,
                     "{} {} at {}; replace the file, no restart is needed", what,
                     expired ? "expired" : "expires", date_of(expires));
        }
    };
    log_due(certificate_expiry_, material->valid_from, material->expires,
            std::string(options_.names.certificate) + ": certificate " + material->subject + " in " +
                options_.files.certificate);
    log_due(authority_expiry_, material->authority_valid_from, material->authority_expires,
            std::string(options_.names.authority) + ": the authority in " + options_.files.authority);
}

}  // namespace penstock::tls
