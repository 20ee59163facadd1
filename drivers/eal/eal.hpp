// DPDK's environment, started and stopped once in the life of a process: the main lcore for control and twin I/O, one lcore for each
// worker, and the memory that mempools and tables are taken from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/result.hpp"
#include "drivers/port/notice.hpp"

namespace penstock::drivers {

struct EalOptions {
    std::vector<unsigned> worker_cpus;   // one worker for each entry; a CPU may appear several times
    unsigned main_cpu = 0;               // may be a worker's too
    unsigned memory_mb = 512;            // of hugepages, or of ordinary memory without them
    bool no_huge = false;                // do not even try hugepages
    std::vector<std::string> pci_allow;  // PCI addresses; empty: no PCI device is looked at
    std::string file_prefix =
        "penstock";  // of DPDK's runtime folder, which stays empty: several gateways may share it
    std::vector<std::string> extra_args;  // handed to EAL as they are, last
    NoticeSink sink;                      // DPDK's log lines, warnings and worse, and our own notices
};

class Eal {
 public:
    // Starts EAL. The calling thread becomes the main lcore and is pinned to main_cpu; threads that it starts afterwards inherit that CPU,
    // which keeps them off the workers' cores. InvalidArgument: a CPU that this process may not use. Exhausted: no memory of either kind.
    // Internal: EAL refused, with its last lines. AlreadyExists: EAL was started before; DPDK cannot start twice in one process.
    //
    // Hugepages are reserved at run time where too few are free and the process may do so; where they cannot be had, ordinary memory is
    // used and memory_description() says why.
    static Result<std::unique_ptr<Eal>> start(EalOptions options);

    // Ends EAL and gives back the hugepages that start() added. Every port must be closed and every worker joined.
    ~Eal();
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;

    // EAL's number of the lcore that worker `index` runs on (WorkerSetOptions::lcores).
    [[nodiscard]] const std::vector<unsigned>& worker_lcores() const noexcept { return worker_lcores_; }
    // The CPUs behind them, in the same order.
    [[nodiscard]] const std::vector<unsigned>& worker_cpus() const noexcept { return options_.worker_cpus; }
    // "hugepages 512 MB", or "no hugepages, 512 MB: <why>".
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
    uint64_t hugepages_added_ = 0;
    std::unique_ptr<LogStream> log_;
};

// EAL's argument list for `options`; pure. `huge` says which kind of memory was found.
[[nodiscard]] std::vector<std::string> eal_arguments(const EalOptions& options, bool huge);

}  // namespace penstock::drivers
