// SPDX-License-Identifier: Apache-2.0
// A packet capture of all workers: gives each of them a tap, and the twin I/O thread one for the frames that
// it drops, and reads their records. One at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/capture/record.hpp"
#include "dataplane/pipeline/tap.hpp"
#include "dataplane/worker/host_tap.hpp"
#include "dataplane/worker/worker_set.hpp"

namespace penstock::worker {

class Capture {
 public:
    // Memory for the records of all workers together, and the minimum for each of them.
    static constexpr size_t kBytes = size_t{32} << 20;
    static constexpr size_t kBytesOfWorkerMin = size_t{1} << 19;

    // Allocates memory, and orders every worker to record its packets. When it returns, all do, except
    // stopped ones. AlreadyExists: a capture runs, or a stopped worker may still use the last one. `workers`
    // must outlive the capture. Control threads; a capture is used by one thread at a time.
    static Result<std::unique_ptr<Capture>> start(WorkerSet& workers, const pipeline::TapOptions& options);
    ~Capture();  // calls stop()
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    // Ends the recording. Waits until no worker uses its tap, at most config::Publisher::kWaitMax. Records
    // that were made before remain readable. Idempotent.
    void stop();

    using Visit = std::function<void(const capture::Record& record, std::span<const uint8_t> frame)>;
    // Calls `visit` for the records that have been made, in order for each worker, at most `max`. Returns
    // their number.
    uint32_t read(uint32_t max, const Visit& visit);
    // Records that found no room, and packets left out because too few records were read in time.
    [[nodiscard]] uint64_t lost() const;

 private:
    Capture(WorkerSet& workers, std::vector<std::unique_ptr<pipeline::Tap>> taps,
            std::unique_ptr<HostTap> host_tap)
        : workers_(workers), taps_(std::move(taps)), host_tap_(std::move(host_tap)) {}

    WorkerSet& workers_;
    std::vector<std::unique_ptr<pipeline::Tap>> taps_;  // by worker
    std::unique_ptr<HostTap> host_tap_;
    bool runs_ = true;
    config::Publisher::Moment stopped_at_{};
};

}  // namespace penstock::worker
