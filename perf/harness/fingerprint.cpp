// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/fingerprint.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "perf/harness/cycles.hpp"

namespace penstock::perf {
namespace {

std::string value_in(const char* path, const std::string& name) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        const size_t colon = line.find(':');
        if (line.starts_with(name) && colon != std::string::npos) {
            const size_t start = line.find_first_not_of(" \t", colon + 1);
            return start == std::string::npos ? "" : line.substr(start);
        }
    }
    return "unknown";
}

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Steal time of all processors since boot: the hypervisor ran others while this machine was runnable.
double stolen_percent() {
    std::istringstream words(first_line("/proc/stat"));
    std::string cpu;
    words >> cpu;
    double sum = 0, stolen = 0, value = 0;
    for (int column = 0; column < 8 && words >> value; ++column) {
        sum += value;
        stolen = column == 7 ? value : stolen;
    }
    return sum > 0 ? stolen / sum * 100 : 0;
}

void line(const char* name, const std::string& text) {
    std::printf("fingerprint %s %s\n", name, text.c_str());
}

// "/autogroup-12 nice 0": nice value of the session relative to other sessions.
int session_nice() {
    const std::string text = first_line("/proc/self/autogroup");
    const size_t at = text.rfind(' ');
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at);
}
bool set_session_nice(int nice) {
    std::ofstream session("/proc/self/autogroup");
    session << nice << std::flush;
    return session.good();
}

// Gives the process priority over others, if root may do that, so that a concurrent build slows down instead
// of the measurement. If the kernel shares processors between sessions first (sched_autogroup), a nice value
// counts only within one session. The session is therefore raised as well, until the program ends, because
// the shell that started it is in the same session.
const char* raise_priority() {
    if (setpriority(PRIO_PROCESS, 0, -20) != 0) {
        return "ordinary";
    }
    if (first_line("/proc/sys/kernel/sched_autogroup_enabled") != "1") {
        return "raised";
    }
    static const int before = session_nice();
    if (!set_session_nice(-20)) {
        return "raised within its session, which could not be raised itself";
    }
    std::atexit([] { set_session_nice(before); });
    return "raised, and its session with it";
}

uint64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t cycles_per_second() {
    static const uint64_t hz = [] {
        const uint64_t ns = monotonic_ns();
        const uint64_t cycles = cycles_begin();
        while (monotonic_ns() - ns < 50'000'000) {
        }
        const uint64_t cycles_after = cycles_end();
        return static_cast<uint64_t>(static_cast<double>(cycles_after - cycles) * 1e9 /
                                     static_cast<double>(monotonic_ns() - ns));
    }();
    return hz;
}

uint64_t empty_span_cycles() {
    static const uint64_t cost = [] {
        uint64_t least = ~uint64_t{0};
        for (int i = 0; i < 100'000; ++i) {
            const uint64_t start = cycles_begin();
            least = std::min(least, cycles_end() - start);
        }
        return least;
    }();
    return cost;
}

void print_fingerprint() {
    const char* const priority = raise_priority();
    utsname kernel{};
    uname(&kernel);
    line("cpu", value_in("/proc/cpuinfo", "model name"));
    line("tsc_mhz", std::to_string(cycles_per_second() / 1'000'000));
    line("l3", first_line("/sys/devices/system/cpu/cpu0/cache/index3/size"));
    line("kernel", kernel.release);
    line("hugepages_2M", first_line("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") +
                             " reserved, transparent " +
                             first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
    line("load", first_line("/proc/loadavg"));
    char stolen[32];
    std::snprintf(stolen, sizeof stolen, "%.2f %%", stolen_percent());
    line("stolen", stolen);
    line("priority", priority);
    line("build", PENSTOCK_BENCH_BUILD);
    std::fflush(stdout);
}

}  // namespace penstock::perf
