// SPDX-License-Identifier: Apache-2.0
// Checks of the workers' CPUs: assignment, isolation, interrupts, frequency.
#include <algorithm>
#include <set>

#include "control/host/cpu_list.hpp"
#include "control/host/subject.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

constexpr const char* kCpuFolder = "/sys/devices/system/cpu";

std::string cpu_path(unsigned cpu, const char* file) {
    return std::string(kCpuFolder) + "/cpu" + std::to_string(cpu) + "/" + file;
}

std::optional<std::vector<unsigned>> cpus_in(const Root& root, const std::string& file) {
    const auto text = root.text(file);
    return text ? parse_cpu_list(*text) : std::nullopt;
}

// CPUs of `all` that are not in `others`.
std::vector<unsigned> without(const std::vector<unsigned>& all, const std::vector<unsigned>& others) {
    std::vector<unsigned> rest;
    std::ranges::set_difference(all, others, std::back_inserter(rest));
    return rest;
}

// Two workers on hardware threads of one core; "": none.
std::string shared_core(const Root& root, const std::vector<unsigned>& workers) {
    for (const unsigned cpu : workers) {
        const auto siblings = cpus_in(root, cpu_path(cpu, "topology/thread_siblings_list"));
        for (const unsigned sibling : siblings.value_or(std::vector<unsigned>())) {
            if (sibling > cpu && std::ranges::count(workers, sibling) > 0) {
                return "CPUs " + std::to_string(cpu) + " and " + std::to_string(sibling) +
                       " are hardware threads of one core";
            }
        }
    }
    return "";
}

// An interrupt with a handler, other than vfio-pci's, which are the gateway's own.
bool has_foreign_handler(const Root& root, const std::string& folder) {
    return std::ranges::any_of(root.names(folder), [&](const std::string& name) {
        return !name.starts_with("vfio") && std::filesystem::is_directory(root.at(folder + "/" + name));
    });
}

}  // namespace

void check_cpus(const Subject& subject, Findings& findings) {
    Check check(findings, "cpus");
    if (!subject.cores) {
        check.unknown("", "/proc/self/status (Cpus_allowed_list)");
        return;
    }
    if (!*subject.cores) {
        check.fault("", subject.cores->error().what)
            .mend("cat /proc/self/status /sys/fs/cgroup/cpuset.cpus.effective");
        return;
    }
    const CorePlan& plan = **subject.cores;
    const std::string text = "workers on " + cpu_list_text(subject.worker_cpus()) +
                             ", all other threads on " + std::to_string(plan.main_cpu);
    const auto online = cpus_in(subject.root(), std::string(kCpuFolder) + "/online");
    if (!online) {
        check.unknown("", std::string(kCpuFolder) + "/online");
        return;
    }
    if (const auto off = without(subject.worker_cpus(), *online); !off.empty()) {
        check.fault("", text + "; offline: " + cpu_list_text(off))
            .mend("echo 1 >" + cpu_path(off.front(), "online"));
    } else if (!plan.remark.empty()) {
        check.warning("", plan.remark).mend("lscpu -e=CPU,NODE,CORE");
    } else if (const std::string shared = shared_core(subject.root(), subject.worker_cpus());
               !shared.empty()) {
        check.warning("", text + "; " + shared + ", and each gets a part of it")
            .mend("lscpu -e=CPU,NODE,CORE");
    } else {
        check.ok("", text);
    }
}

void check_isolation(const Subject& subject, Findings& findings) {
    Check check(findings, "isolation");
    const auto workers = subject.worker_cpus();
    const auto boot = cpus_in(subject.root(), std::string(kCpuFolder) + "/isolated");
    // The partition of a cgroup (cpuset.cpus.partition = isolated), Linux 6.8.
    const auto partition = cpus_in(subject.root(), "/sys/fs/cgroup/cpuset.cpus.isolated");
    if (!boot && !partition) {
        check.unknown("", std::string(kCpuFolder) + "/isolated");
        return;
    }
    const auto shared = without(without(workers, boot.value_or(std::vector<unsigned>())),
                                partition.value_or(std::vector<unsigned>()));
    if (shared.empty()) {
        check.ok("", "CPUs " + cpu_list_text(workers) + " are isolated");
        return;
    }
    const std::string list = cpu_list_text(workers);
    const auto online = cpus_in(subject.root(), std::string(kCpuFolder) + "/online");
    const std::string rest = cpu_list_text(without(online.value_or(std::vector<unsigned>()), workers));
    check.warning("", "other programs may run on the workers' CPUs " + cpu_list_text(shared));
    check.mend("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&isolcpus=" + list + " nohz_full=" + list +
               " rcu_nocbs=" + list + (rest.empty() ? "" : " irqaffinity=" + rest) +
               " /' /etc/default/grub && update-grub && reboot");
}

void check_interrupts(const Subject& subject, Findings& findings) {
    Check check(findings, "irq-affinity");
    const auto workers = subject.worker_cpus();
    const auto irqs = subject.root().names("/proc/irq");
    if (irqs.empty()) {
        check.unknown("", "/proc/irq");
        return;
    }
    std::vector<unsigned> disturbing;
    for (const std::string& irq : irqs) {
        const auto number = whole_number<unsigned>(irq);
        const std::string folder = "/proc/irq/" + irq;
        if (!number || !has_foreign_handler(subject.root(), folder)) {
            continue;
        }
        auto cpus = cpus_in(subject.root(), folder + "/effective_affinity_list");
        if (!cpus || cpus->empty()) {
            cpus = cpus_in(subject.root(), folder + "/smp_affinity_list");
        }
        if (cpus &&
            std::ranges::any_of(*cpus, [&](unsigned cpu) { return std::ranges::count(workers, cpu) > 0; })) {
            disturbing.push_back(*number);
        }
    }
    if (disturbing.empty()) {
        check.ok("", "no interrupt is assigned to the workers' CPUs");
        return;
    }
    std::ranges::sort(disturbing);
    const auto online = cpus_in(subject.root(), std::string(kCpuFolder) + "/online");
    const std::string rest = cpu_list_text(without(online.value_or(std::vector<unsigned>()), workers));
    check.warning("", std::to_string(disturbing.size()) +
                          " interrupts run on the workers' CPUs: " + cpu_list_text(disturbing));
    if (find_process(subject.root(), "irqbalance")) {
        check.mend("echo IRQBALANCE_BANNED_CPULIST=" + cpu_list_text(workers) +
                   " >>/etc/default/irqbalance && systemctl restart irqbalance");
    } else if (!rest.empty()) {
        std::string numbers;
        for (const unsigned irq : disturbing) {
            numbers += " " + std::to_string(irq);
        }
        check.mend("for irq in" + numbers + "; do echo " + rest + " >/proc/irq/$irq/smp_affinity_list; done");
    }
}

void check_governors(const Subject& subject, Findings& findings) {
    Check check(findings, "governor");
    if (!subject.root().exists(kCpuFolder)) {
        check.unknown("", kCpuFolder);
        return;
    }
    std::vector<unsigned> slow;
    std::set<std::string> names;
    bool is_scaled = false;
    for (const unsigned cpu : subject.worker_cpus()) {
        const auto governor = subject.root().text(cpu_path(cpu, "cpufreq/scaling_governor"));
        is_scaled |= governor.has_value();
        if (governor && *governor != "performance") {
            slow.push_back(cpu);
            names.insert(*governor);
        }
    }
    if (slow.empty()) {
        check.ok("", is_scaled ? "performance" : "the kernel does not scale the frequency of these CPUs");
        return;
    }
    check.warning("", "CPUs " + cpu_list_text(slow) + " use the governor " + *names.begin() +
                          ", which lowers their frequency");
    std::string files;
    for (const unsigned cpu : slow) {
        files += " " + cpu_path(cpu, "cpufreq/scaling_governor");
    }
    check.mend("echo performance | tee" + files);
}

}  // namespace penstock::host
