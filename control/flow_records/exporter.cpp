// SPDX-License-Identifier: Apache-2.0
#include "control/flow_records/exporter.hpp"

#include <algorithm>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::flow_records {
namespace {

constexpr size_t kBatch = 512;
// Pause when the queues are empty. limits::kFlowRecordsWaiting refers to it.
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::seconds kConnectEvery{1};

constexpr std::array<std::string_view, kLosses> kLossNames{"disk", "files", "collector"};

int64_t seconds_since_1970() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

std::string_view to_string(Loss loss) noexcept {
    return kLossNames[static_cast<size_t>(loss)];
}

Exporter::Exporter(Options options) : options_(std::move(options)), batch_(kBatch) {
    if (!options_.folder.empty()) {
        folder_.emplace(options_.folder, options_.rotation);
    }
    thread_ = std::thread([this] { run(); });
}

Exporter::~Exporter() {
    stop();
}

void Exporter::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

ExporterCounts Exporter::counts() const {
    ExporterCounts out{.logged = logged_.load(std::memory_order_relaxed),
                       .sent = sent_.load(std::memory_order_relaxed)};
    for (size_t i = 0; i < kLosses; ++i) {
        out.lost[i] = lost_[i].load(std::memory_order_relaxed);
    }
    return out;
}

std::string Exporter::fault() const {
    const std::lock_guard lock(mutex_);
    return disk_fault_ + (disk_fault_.empty() || collector_fault_.empty() ? "" : "; ") + collector_fault_;
}

void Exporter::run() {
    for (;;) {
        const bool had_records = round();
        rounds_.fetch_add(1, std::memory_order_relaxed);
        if (had_records) {
            continue;
        }
        std::unique_lock lock(mutex_);
        if (stopping_) {
            return;
        }
        wake_.wait_for(lock, kPause, [this] { return stopping_; });
    }
}

bool Exporter::round() {
    if (wants_reopening_.exchange(false, std::memory_order_relaxed) && folder_) {
        folder_->reopen();
    }
    const int64_t now_s = seconds_since_1970();
    if (options_.collector) {
        prepare_collector(static_cast<uint32_t>(now_s));
    }
    const size_t count = options_.take(batch_);
    if (count == 0) {
        return false;
    }
    const std::span records = std::span(batch_).first(count);
    refresh_names(records);
    // Before the files: a slow disk delays no message.
    if (options_.collector) {
        send(records, now_s);
    }
    if (folder_) {
        write_files(records, now_s);
    }
    return true;
}

void Exporter::refresh_names(std::span<const pipeline::TimedFlowRecord> records) {
    const Clock::time_point now = Clock::now();
    std::vector<ServiceId> wanted;
    for (const auto& timed : records) {
        Name& name = names_[timed.record.service];
        if (name.until <= now) {
            name.until = now + kNamesFor;
            wanted.push_back(timed.record.service);
        }
    }
    if (wanted.empty()) {
        return;
    }
    std::vector<ServiceFacts> facts = options_.name(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
        names_[wanted[i]].facts = std::move(facts[i]);
    }
}

void Exporter::write_files(std::span<const pipeline::TimedFlowRecord> records, int64_t now_s) {
    for (const auto& timed : records) {
        if (!folder_->add({timed, names_.at(timed.record.service).facts}, options_.origin)) {
            lose(Loss::Files, 1);
        }
    }
    const LogFolder::Written written = folder_->write(now_s);
    logged_.fetch_add(written.records, std::memory_order_relaxed);
    lose(Loss::Disk, written.lost);
    report(disk_fault_, written.error);
}

void Exporter::prepare_collector(uint32_t now_s) {
    const Clock::time_point now = Clock::now();
    if (!collector_) {
        if (now < connect_at_) {
            return;
        }
        connect_at_ = now + kConnectEvery;
        auto connected = Collector::connect(*options_.collector);
        if (!connected) {
            return report(collector_fault_, connected.error().what);
        }
        collector_.emplace(std::move(*connected));
        report(collector_fault_, "");
        if (!encoder_) {
            encoder_.emplace(options_.domain, collector_->message_bytes_max());
        }
        templates_at_ = now;
    }
    if (now >= templates_at_) {
        templates_at_ = now + kTemplatesEvery;
        send(encoder_->templates(now_s), 0);
    }
}

void Exporter::send(std::span<const pipeline::TimedFlowRecord> records, int64_t now_s) {
    if (!collector_) {
        return lose(Loss::Collector, records.size());
    }
    const auto export_s = static_cast<uint32_t>(now_s);
    for (const auto& timed : records) {
        const uint32_t waiting = encoder_->records();
        if (const auto full =
                encoder_->add({timed, names_.at(timed.record.service).facts}, options_.origin, export_s)) {
            send(*full, waiting);
        }
    }
    const uint32_t waiting = encoder_->records();
    if (const auto last = encoder_->finish(export_s)) {
        send(*last, waiting);
    }
}

void Exporter::send(const Message& message, uint32_t records) {
    const Collector::Outcome outcome = collector_->send(message);
    if (outcome.was_refused) {
        lose(Loss::Collector, sent_last_);
    }
    sent_last_ = outcome.is_sent ? records : 0;
    (outcome.is_sent ? sent_ : lost_[static_cast<size_t>(Loss::Collector)])
        .fetch_add(records, std::memory_order_relaxed);
    if (outcome.is_sent && !outcome.was_refused) {
        return report(collector_fault_, "");
    }
    report(collector_fault_,
           "the collector at " + options_.collector->to_string() + " does not accept messages");
    // A collector that has started anew has no templates.
    templates_at_ = std::min(templates_at_, Clock::now() + kConnectEvery);
}

void Exporter::lose(Loss loss, uint64_t records) {
    lost_[static_cast<size_t>(loss)].fetch_add(records, std::memory_order_relaxed);
}

void Exporter::report(std::string& fault, const std::string& now) {
    std::string before;
    {
        const std::lock_guard lock(mutex_);
        before = std::exchange(fault, now);
    }
    if (now.empty() != before.empty()) {
        now.empty() ? log::get("control").info("flow records are written again; before: {}", before)
                    : log::get("control").warn("flow records are lost: {}", now);
    }
}

}  // namespace penstock::flow_records
