// SPDX-License-Identifier: Apache-2.0
#include "drivers/eal/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "dataplane/base/limits.hpp"
#include "drivers/eal/host_facts.hpp"
#include "drivers/eal/hugepages.hpp"

namespace penstock::drivers {

// EAL's main lcore is 0, the workers are 1, 2, ...
constexpr unsigned kMainLcore = 0;

// Destination of DPDK's log lines: the sink, and the last few lines also the error if EAL does not start.
struct Eal::LogStream {
    static constexpr size_t kLinesKept = 6;

    explicit LogStream(NoticeSink to) : sink(std::move(to)) {
        cookie_io_functions_t functions{};
        functions.write = [](void* self, const char* text, size_t size) -> ssize_t {
            static_cast<LogStream*>(self)->take({text, size});
            return static_cast<ssize_t>(size);
        };
        file = fopencookie(this, "w", functions);
        if (file != nullptr) {
            setvbuf(file, nullptr, _IOLBF, 0);
            rte_openlog_stream(file);
        }
    }
    ~LogStream() {
        rte_openlog_stream(nullptr);
        if (file != nullptr) {
            fclose(file);
        }
    }
    LogStream(const LogStream&) = delete;
    LogStream& operator=(const LogStream&) = delete;

    void take(std::string_view text) {
        const std::scoped_lock held(mutex);
        partial += text;
        for (size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
            const std::string line = partial.substr(0, end);
            partial.erase(0, end + 1);
            if (line.empty()) {
                continue;
            }
            last_lines.push_back(line);
            if (last_lines.size() > kLinesKept) {
                last_lines.pop_front();
            }
            if (sink) {
                // Lines about page sizes without a free page are not notices: memory_description() reports
                // the result.
                sink(line.find("hugepages reported") != std::string::npos ? NoticeLevel::Debug
                                                                          : level_of_current_line(),
                     line);
            }
        }
    }

    [[nodiscard]] std::string last_words() {
        const std::scoped_lock held(mutex);
        std::string all;
        for (const std::string& line : last_lines) {
            all += (all.empty() ? "" : "; ") + line;
        }
        return all;
    }

    static NoticeLevel level_of_current_line() {
        const int level = rte_log_cur_msg_loglevel();  // -1 outside of DPDK's own logging
        if (level < 0 || level >= static_cast<int>(RTE_LOG_DEBUG)) {
            return NoticeLevel::Debug;
        }
        if (level <= static_cast<int>(RTE_LOG_ERR)) {
            return NoticeLevel::Error;
        }
        return level == static_cast<int>(RTE_LOG_WARNING) ? NoticeLevel::Warning : NoticeLevel::Info;
    }

    NoticeSink sink;
    FILE* file = nullptr;
    std::mutex mutex;
    std::string partial;
    std::deque<std::string> last_lines;
};

// An address that no device has. EAL then probes none, and the bus can be used later.
constexpr const char* kNoPciDevice = "ffff:ff:1f.7";

std::vector<std::string> eal_arguments(const EalOptions& options, bool huge, const std::string& hugetlbfs) {
    // '0@0,1@1,2@1': several lcores may share one CPU, which a plain core list would refuse.
    std::string lcores = std::to_string(kMainLcore) + "@" + std::to_string(options.main_cpu);
    for (size_t i = 0; i < options.worker_cpus.size(); ++i) {
        lcores += "," + std::to_string(kMainLcore + 1 + i) + "@" + std::to_string(options.worker_cpus[i]);
    }
    std::vector<std::string> args = {
        "penstockd",
        "--lcores",
        lcores,
        "--main-lcore",
        std::to_string(kMainLcore),
        "-m",
        std::to_string(whole_pages_mb(options.memory_mb, huge ? options.hugepage_size : HugepageSize::Any)),
        "--no-telemetry",
        "--log-level=warning"};
    // EAL refuses the two options together. --in-memory leaves no files behind and needs no hugetlbfs mount.
    // The others leave none behind either.
    if (huge && !hugetlbfs.empty()) {
        args.insert(args.end(), {"--huge-dir", hugetlbfs, "--huge-unlink=always", "--no-shconf"});
    } else if (huge) {
        args.emplace_back("--in-memory");
    } else {
        args.insert(args.end(), {"--no-huge", "--no-shconf"});
    }
    args.push_back("--file-prefix=" + options.file_prefix);
    if (options.pci_allow.empty()) {
        args.emplace_back("--no-pci");
    } else if (options.probes_pci_later) {
        args.insert(args.end(), {"-a", kNoPciDevice});
    } else {
        for (const std::string& address : options.pci_allow) {
            args.insert(args.end(), {"-a", address});
        }
    }
    args.insert(args.end(), options.extra_args.begin(), options.extra_args.end());
    return args;
}

namespace {

Status check_cpus(const EalOptions& options) {
    if (options.worker_cpus.empty() || options.worker_cpus.size() > limits::kWorkersMax) {
        return fail(Errc::InvalidArgument,
                    "the number of workers must be from 1 to " + std::to_string(limits::kWorkersMax));
    }
    const std::vector<unsigned> allowed = allowed_cpus();
    const auto check = [&](unsigned cpu, const char* role) -> Status {
        if (std::ranges::find(allowed, cpu) != allowed.end()) {
            return {};
        }
        std::string list;
        for (const unsigned other : allowed) {
            list += (list.empty() ? "" : ",") + std::to_string(other);
        }
        return fail(Errc::InvalidArgument, std::string(role) + " CPU " + std::to_string(cpu) +
                                               " is not available to this process (available: " + list + ")");
    };
    PENSTOCK_TRY_STATUS(check(options.main_cpu, "main"));
    for (const unsigned cpu : options.worker_cpus) {
        PENSTOCK_TRY_STATUS(check(cpu, "worker"));
    }
    return {};
}

// The folder that limits EAL to small pages; "": no limit is needed, because no larger page is free. EAL has
// no option for the size itself, and takes the largest pages first.
Result<std::string> folder_of_small_pages(HugepageSize size) {
    if (size != HugepageSize::Small2M || available_pages(HugepageSize::Large1G) == 0) {
        return std::string();
    }
    std::string folder = hugetlbfs_of(HugepageSize::Small2M);
    if (folder.empty()) {
        return fail(
            Errc::Exhausted,
            "--hugepage-size 2M: pages of 1 GB are free, which DPDK would take first; mount a hugetlbfs "
            "of 2 MB pages: mount -t hugetlbfs -o pagesize=2M none /dev/hugepages");
    }
    return folder;
}

std::atomic<bool> started_before = false;

}  // namespace

Eal::Eal(EalOptions options) : options_(std::move(options)) {}

Result<std::unique_ptr<Eal>> Eal::start(EalOptions options) {
    PENSTOCK_TRY_STATUS(check_cpus(options));
    if (started_before.exchange(true)) {
        return fail(Errc::AlreadyExists,
                    "DPDK's EAL was already started in this process and cannot be started twice");
    }
    std::unique_ptr<Eal> eal(new Eal(std::move(options)));
    // Held until DPDK has mapped the pages. Declared after `eal`, because the destructor of `eal` takes this
    // lock itself.
    const HugepageTurn turn;
    const HugepageSize page = eal->options_.hugepage_size;
    const std::string size = std::to_string(whole_pages_mb(eal->options_.memory_mb, page)) + " MB";
    std::string hugetlbfs;
    // The kind of memory must be determined first: a rte_eal_init that failed for lack of memory cannot be
    // repeated in the same process.
    if (eal->options_.no_huge) {
        eal->memory_description_ = "no hugepages, " + size + ": as requested";
    } else if (auto added = reserve_hugepages(eal->options_.memory_mb, page); added) {
        eal->hugepages_added_ = *added;
        eal->has_hugepages_ = true;
        eal->memory_description_ = page == HugepageSize::Any
                                       ? "hugepages " + size
                                       : std::string("hugepages of ") + text_of_page(page) + ", " + size;
        PENSTOCK_TRY(hugetlbfs, folder_of_small_pages(page));
    } else if (page != HugepageSize::Any) {
        return fail(Errc::Exhausted, std::string("--hugepage-size ") + word_of_page(page) + ": " +
                                         added.error().what +
                                         "; `penstockctl doctor` has the command that reserves them");
    } else {
        eal->memory_description_ = "no hugepages, " + size + ": " + added.error().what;
        if (eal->options_.sink) {
            eal->options_.sink(
                NoticeLevel::Warning,
                eal->memory_description_ + "; `penstockctl doctor` has the command that reserves them");
        }
    }

    eal->log_ = std::make_unique<LogStream>(eal->options_.sink);
    std::vector<std::string> args = eal_arguments(eal->options_, eal->has_hugepages_, hugetlbfs);
    std::vector<char*> argv;
    for (std::string& arg : args) {
        argv.push_back(arg.data());
    }
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
        const Errc code = rte_errno == ENOMEM   ? Errc::Exhausted
                          : rte_errno == EACCES ? Errc::PermissionDenied
                                                : Errc::Internal;
        return fail(code, std::string("DPDK's EAL did not start: ") + rte_strerror(rte_errno) + " (" +
                              eal->log_->last_words() + ")");
    }
    eal->started_ = true;
    for (unsigned i = 0; i < eal->options_.worker_cpus.size(); ++i) {
        eal->worker_lcores_.push_back(kMainLcore + 1 + i);
    }
    return eal;
}

Eal::~Eal() {
    if (started_) {
        // EAL creates a folder for its runtime files even with options against it, and does not remove it.
        const std::string folder = rte_eal_get_runtime_dir();
        if (!is_abandoned_) {
            rte_eal_cleanup();
        }
        std::error_code shared_with_others;
        std::filesystem::remove(folder, shared_with_others);
    }
    if (hugepages_added_ > 0) {
        const HugepageTurn turn;
        release_hugepages(hugepages_added_, options_.hugepage_size);
    }
}

}  // namespace penstock::drivers
