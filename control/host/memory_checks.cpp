// SPDX-License-Identifier: Apache-2.0
// Checks of the configuration as a whole, and of memory.
#include <algorithm>
#include <set>

#include "control/host/subject.hpp"
#include "dataplane/base/text.hpp"
#include "drivers/eal/hugepage_size.hpp"

namespace penstock::host {
namespace {

using drivers::HugepageSize;

constexpr uint64_t kKbPerMb = 1024;

struct NodePages {
    uint64_t total_kb = 0, free_kb = 0;
    uint64_t addable_total = 0;  // pages of the size that is added if some are missing
    bool is_readable = false;
};

// The pages that penstockd may use. `folder`: .../hugepages of one node, or of the machine.
NodePages pages_in(const Root& root, const std::string& folder, HugepageSize wanted) {
    constexpr std::string_view kPrefix = "hugepages-", kSuffix = "kB";
    NodePages pages;
    for (const std::string& name : root.names(folder)) {
        if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
            (wanted != HugepageSize::Any && name != drivers::pool_name(wanted))) {
            continue;
        }
        const std::string_view size =
            std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
        const auto page_kb = whole_number<uint64_t>(size);
        const auto total = root.number(folder + "/" + name + "/nr_hugepages");
        const auto free = root.number(folder + "/" + name + "/free_hugepages");
        if (page_kb && total && free) {
            pages.is_readable = true;
            pages.total_kb += *page_kb * *total;
            pages.free_kb += *page_kb * *free;
            pages.addable_total += name == drivers::pool_name(wanted) ? *total : 0;
        }
    }
    return pages;
}

struct PoolOfNode {
    std::string object;  // "node 0"
    std::string folder;
    NodePages pages;
    bool is_needed = false;  // a worker or a device is on the node
};

std::vector<PoolOfNode> hugepage_pools(const Subject& subject) {
    const auto workers = subject.worker_cpus();
    std::vector<PoolOfNode> pools;
    for (const NumaNode& node : numa_nodes(subject.root())) {
        PoolOfNode pool{"node " + std::to_string(node.id), node.folder + "/hugepages", {}, false};
        pool.pages = pages_in(subject.root(), pool.folder, subject.needs.hugepage_size);
        pool.is_needed = std::ranges::any_of(
                             node.cpus, [&](unsigned cpu) { return std::ranges::count(workers, cpu) > 0; }) ||
                         std::ranges::any_of(subject.devices, [&](const PciDevice& device) {
                             return device.numa_node == node.id;
                         });
        pools.push_back(std::move(pool));
    }
    if (pools.empty()) {
        constexpr const char* kMachine = "/sys/kernel/mm/hugepages";
        pools.push_back(
            {"", kMachine, pages_in(subject.root(), kMachine, subject.needs.hugepage_size), true});
    }
    return pools;
}

// The command that makes `missing_kb` more available on a node.
std::string reserve_command(const PoolOfNode& pool, uint64_t missing_kb, HugepageSize size) {
    const uint64_t page_kb = drivers::page_kb(size);
    const uint64_t pages = pool.pages.addable_total + (missing_kb + page_kb - 1) / page_kb;
    return "echo " + std::to_string(pages) + " >" + pool.folder + "/" + drivers::pool_name(size) +
           "/nr_hugepages";
}

}  // namespace

void check_configuration(const Subject& subject, const std::string& config,
                         const std::vector<std::string>& mistakes, Findings& findings) {
    Check check(findings, "configuration");
    if (config.empty()) {
        check.add(Level::Unknown, "", "no configuration is given: ports and addresses are not checked")
            .mend("penstockctl doctor /etc/penstock/penstockd.ini");
        return;
    }
    if (!subject.root().text(config)) {
        check.fault(config, "the file cannot be read").mend("ls -l " + config);
        return;
    }
    const std::string command = "penstockd --check-config --config " + config;
    const auto found = subject.machine.check_config(config);
    for (const std::string& mistake : found ? *found : mistakes) {
        check.fault(config, mistake).mend(command);
    }
    if (!found && mistakes.empty()) {
        check.add(Level::Unknown, config,
                  "penstockd is not installed here, so its options are not validated");
    } else if (found && found->empty()) {
        check.ok(config, std::to_string(subject.needs.ports.size()) + " ports, valid");
    }
}

void check_hugepages(const Subject& subject, Findings& findings) {
    Check check(findings, "hugepages");
    const bool needs_physical = !subject.devices.empty() && !subject.has_iommu;
    if (subject.needs.no_huge) {
        if (needs_physical) {
            check.fault("", "--no-huge is set, but a PCI device without an IOMMU needs hugepages")
                .mend("sed -i 's/^no-huge.*/no-huge = off/' /etc/penstock/penstockd.ini");
        } else {
            check.ok("", "not used (--no-huge)");
        }
        return;
    }
    const auto pools = hugepage_pools(subject);
    uint64_t available_kb = 0;
    for (const PoolOfNode& pool : pools) {
        available_kb += subject.penstockd ? pool.pages.total_kb : pool.pages.free_kb;
    }
    const HugepageSize size = subject.needs.hugepage_size;
    const bool is_any = size == HugepageSize::Any;
    // Tables and packet buffers have pages of their own: rounding each up takes one page of 1 GB more.
    const uint64_t more_kb = size == HugepageSize::Large1G ? drivers::page_kb(size) : 0;
    const uint64_t wanted_kb = drivers::whole_pages_mb(subject.needs.memory_mb, size) * kKbPerMb + more_kb;
    const uint64_t missing_kb = wanted_kb > available_kb ? wanted_kb - available_kb : 0;
    const auto needed = std::ranges::find_if(pools, &PoolOfNode::is_needed);
    const PoolOfNode& first = needed == pools.end() ? pools.front() : *needed;
    for (const PoolOfNode& pool : pools) {
        if (!pool.pages.is_readable) {
            check.unknown(pool.object, is_any ? pool.folder : pool.folder + "/" + drivers::pool_name(size));
            continue;
        }
        const std::string text = std::to_string(pool.pages.free_kb / kKbPerMb) + " of " +
                                 std::to_string(pool.pages.total_kb / kKbPerMb) + " MB free" +
                                 (is_any ? "" : std::string(" in pages of ") + drivers::text_of_page(size));
        if (&pool == &first && missing_kb > 0) {
            const std::string gap = text + "; --memory-mb " + std::to_string(subject.needs.memory_mb) +
                                    " needs " + std::to_string((missing_kb + kKbPerMb - 1) / kKbPerMb) +
                                    " MB more";
            if (!is_any) {
                check.warning(pool.object,
                              gap + ": penstockd requests them, and does not start if refused" +
                                  (size == HugepageSize::Large1G
                                       ? "; the kernel option hugepagesz=1G hugepages=N reserves "
                                         "them at boot"
                                       : ""));
            } else if (needs_physical) {
                check.fault(pool.object,
                            gap + ", and a PCI device without an IOMMU cannot use ordinary memory");
            } else {
                check.warning(pool.object,
                              gap + ": penstockd requests them, and uses slower memory if refused");
            }
            check.mend(reserve_command(pool, missing_kb, size));
        } else if (pool.is_needed && pool.pages.total_kb == 0 && missing_kb == 0) {
            check.warning(pool.object, "no hugepages, although a device or worker is on this node")
                .mend(reserve_command(pool, wanted_kb, size));
        } else {
            check.ok(pool.object, text + (subject.penstockd ? "; penstockd is running" : ""));
        }
    }
}

}  // namespace penstock::host
