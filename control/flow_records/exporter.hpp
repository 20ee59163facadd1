// SPDX-License-Identifier: Apache-2.0
// The thread that takes flow records from the workers' queues, resolves their names, and writes them to files
// and to an IPFIX collector. It may block on a slow disk. The queues then fill, and the workers count the
// records that they cannot queue. Workers never wait.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "control/flow_records/collector.hpp"
#include "control/flow_records/event.hpp"
#include "control/flow_records/ipfix.hpp"
#include "control/flow_records/log_folder.hpp"
#include "dataplane/base/socket_address.hpp"

namespace penstock::flow_records {

// Why the thread could not write a record. A record with two destinations may be lost for one of them.
enum class Loss : uint8_t {
    Disk,       // a file could not be written
    Files,      // one file too many (LogFolder::kFilesMax)
    Collector,  // the message could not be sent
};
inline constexpr size_t kLosses = 3;
// "disk", "files", "collector"
[[nodiscard]] std::string_view to_string(Loss loss) noexcept;

struct ExporterCounts {
    uint64_t logged = 0;  // written to files
    uint64_t sent = 0;    // sent to the collector
    std::array<uint64_t, kLosses> lost{};
};

class Exporter {
 public:
    // Time between two repetitions of the templates.
    static constexpr std::chrono::seconds kTemplatesEvery{60};

    struct Options {
        Origin origin;
        std::string folder;  // "": no files
        RotationLimits rotation;
        std::optional<SocketAddress> collector;
        uint32_t domain = 1;  // observation domain
        // On the exporter's thread. Takes the next records; returns their number, 0: there are none now.
        std::function<size_t(std::span<pipeline::TimedFlowRecord>)> take;
        // On the exporter's thread. The names of these service ports, in the same order.
        std::function<std::vector<ServiceFacts>(std::span<const ServiceId>)> name;
    };

    explicit Exporter(Options options);
    ~Exporter();  // stop()
    Exporter(const Exporter&) = delete;
    Exporter& operator=(const Exporter&) = delete;

    // Writes what is in the queues, and ends the thread. Idempotent.
    void stop();
    // Opens all files anew. Any thread; does not block.
    void reopen() { wants_reopening_.store(true, std::memory_order_relaxed); }
    // Any thread.
    [[nodiscard]] ExporterCounts counts() const;
    // Why records are being lost now, as one line of text; "": none are. Any thread.
    [[nodiscard]] std::string fault() const;
    // Rounds of the thread, for a watch. Any thread.
    [[nodiscard]] uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

 private:
    // Known names are used for this time. A new id is resolved at once.
    static constexpr std::chrono::seconds kNamesFor{1};
    using Clock = std::chrono::steady_clock;

    void run();
    // Returns whether there was a record.
    bool round();
    void refresh_names(std::span<const pipeline::TimedFlowRecord> records);
    void write_files(std::span<const pipeline::TimedFlowRecord> records, int64_t now_s);
    void send(std::span<const pipeline::TimedFlowRecord> records, int64_t now_s);
    // A message of templates has no records.
    void send(const Message& message, uint32_t records);
    // Connects to the collector if it is time to, and repeats the templates if it is time to.
    void prepare_collector(uint32_t now_s);
    void lose(Loss loss, uint64_t records);
    // Logs the begin and the end of a fault; "": it is over.
    void report(std::string& fault, const std::string& now);

    const Options options_;
    std::optional<LogFolder> folder_;
    std::optional<Collector> collector_;
    std::optional<IpfixEncoder> encoder_;
    Clock::time_point connect_at_{}, templates_at_{};
    uint32_t sent_last_ = 0;  // records in the last message that was sent
    std::vector<pipeline::TimedFlowRecord> batch_;
    struct Name {
        ServiceFacts facts;
        Clock::time_point until;
    };
    std::unordered_map<ServiceId, Name> names_;

    mutable std::mutex mutex_;  // of the next three
    std::string disk_fault_, collector_fault_;
    bool stopping_ = false;
    std::condition_variable wake_;

    std::atomic<bool> wants_reopening_{false};
    std::atomic<uint64_t> rounds_{0}, logged_{0}, sent_{0};
    std::array<std::atomic<uint64_t>, kLosses> lost_{};
    std::thread thread_;  // last: it uses all members above
};

}  // namespace penstock::flow_records
