// SPDX-License-Identifier: Apache-2.0
// DPDK's environment, started and stopped once per process: the main lcore for control and twin I/O, one
// lcore for each worker, and the memory of mempools and tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/result.hpp"
#include "drivers/eal/hugepage_size.hpp"
#include "drivers/port/notice.hpp"

namespace penstock::drivers {

struct EalOptions {
    std::vector<unsigned> worker_cpus;  // one worker for each entry; a CPU may appear several times
    unsigned main_cpu = 0;              // may also be a worker's
    unsigned memory_mb = 512;           // of hugepages, or of ordinary memory if there are none
    bool no_huge = false;               // do not try hugepages
    HugepageSize hugepage_size = HugepageSize::Any;
    std::vector<std::string> pci_allow;  // PCI addresses; empty: no PCI device is probed
    bool probes_pci_later = false;       // another process has them yet; NicPort::probe() probes them
    // Of DPDK's runtime folder, which stays empty, so several gateways may share it.
    std::string file_prefix = "penstock";
    std::vector<std::string> extra_args;  // passed to EAL unchanged, last
    NoticeSink sink;  // DPDK's log lines of level warning and above, and notices of this room
};

class Eal {
 public:
    // Starts EAL. The calling thread becomes the main lcore and is pinned to main_cpu. Threads that it starts
    // afterwards inherit that CPU, which keeps them off the workers' cores.
    //
    // InvalidArgument: a CPU that this process may not use. Exhausted: no memory of either kind, or too few
    // hugepages of the size that the options name. Internal:
    // EAL failed, with its last log lines. AlreadyExists: EAL was started before; DPDK cannot start twice in
    // one process.
    //
    // If too few hugepages are free, they are reserved at run time if the process is permitted to. If they
    // are not available, ordinary memory is used and memory_description() gives the reason, unless the
    // options name a size: then the start fails.
    static Result<std::unique_ptr<Eal>> start(EalOptions options);

    // Stops EAL and releases the hugepages that start() added. Every port must be closed and every worker
    // joined.
    ~Eal();
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;

    // The destructor does not stop EAL, which would close devices of another process. This process must end.
    void abandon() noexcept { is_abandoned_ = true; }

    // EAL's number of the lcore that worker `index` runs on (WorkerSetOptions::lcores).
    [[nodiscard]] const std::vector<unsigned>& worker_lcores() const noexcept { return worker_lcores_; }
    // The CPUs of these lcores, in the same order.
    [[nodiscard]] const std::vector<unsigned>& worker_cpus() const noexcept { return options_.worker_cpus; }
    // "hugepages 512 MB", "hugepages of 1 GB, 1024 MB", or "no hugepages, 512 MB: <reason>".
    [[nodiscard]] const std::string& memory_description() const noexcept { return memory_description_; }
    [[nodiscard]] bool has_hugepages() const noexcept { return has_hugepages_; }

 private:
    explicit Eal(EalOptions options);
    struct LogStream;
    EalOptions options_;
    std::vector<unsigned> worker_lcores_;
    std::string memory_description_;
    bool has_hugepages_ = false;
    bool started_ = false;
    bool is_abandoned_ = false;
    uint64_t hugepages_added_ = 0;
    std::unique_ptr<LogStream> log_;
};

// EAL's argument list for `options`; pure. `huge`: hugepages are available. `hugetlbfs`: the only folder that
// EAL takes its pages from; "": pages of all sizes, the largest first.
[[nodiscard]] std::vector<std::string> eal_arguments(const EalOptions& options, bool huge,
                                                     const std::string& hugetlbfs = "");

}  // namespace penstock::drivers
