// SPDX-License-Identifier: Apache-2.0
// G15: heap operations, locks and system calls of a busy worker while it processes 10^7 packets. The expected
// number is zero.
//
// The process forks before anything else. The child runs a real worker on net_ring ports, with connections
// set up and used in both directions at full NAT; the parent counts the worker's system calls by ptrace. Both
// counters are first tested on a thread with a known number of each counted operation, so a defective counter
// cannot pass.
#include <pthread.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/eal.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/report.hpp"
#include "perf/quiet/counting.hpp"
#include "perf/quiet/ring_wire.hpp"
#include "perf/quiet/tracer.hpp"
#include "perf/traffic/network.hpp"
#include "perf/traffic/snapshot.hpp"
#include "perf/traffic/trial.hpp"

namespace penstock::perf {
namespace {

constexpr uint64_t kPackets = 10'000'000;
constexpr uint32_t kConnections = 262'144;
constexpr uint32_t kFlows = 131'072;
constexpr double kRate = 2e6;       // clients' packets per second, and as many answers
constexpr double kSecondsMax = 60;  // for all packets, on a machine with other work
constexpr Counted kKnown{.heap = 6, .locks = 2};
constexpr uint64_t kKnownSystemCalls = 5;

// Messages between the two processes.
enum class Word : int32_t { Watch, Stop, Ready, Ended };
struct Message {
    Word word = Word::Ended;
    // Watch: the thread. Stop: not 0 if no calls are expected, so that they are listed. Its answer: number of
    // system calls.
    int64_t number = 0;
};

// One end of a socket pair. If the peer has ended, this process ends too, because no measurement is possible
// any more.
class Line {
 public:
    explicit Line(int fd) : fd_(fd) {}
    void say(Message message) const {
        if (write(fd_, &message, sizeof(message)) != sizeof(message)) {
            std::_Exit(3);
        }
    }
    // Null: no message was received yet.
    [[nodiscard]] std::optional<Message> hear(bool wait) const {
        Message message;
        const ssize_t got = recv(fd_, &message, sizeof(message), wait ? 0 : MSG_DONTWAIT);
        if (got == sizeof(message)) {
            return message;
        }
        return got == 0 || wait ? std::optional(Message{}) : std::nullopt;
    }
    Message ask(Message message) const {
        say(message);
        return *hear(true);
    }

 private:
    int fd_;
};

// The parent: attaches and detaches on request.
int trace(const Line& child) {
    SystemCallTracer tracer;
    bool attached = false;
    for (;;) {
        const auto said = child.hear(!attached);
        if (!said) {
            tracer.look();
            usleep(100);
        } else if (said->word == Word::Watch) {
            attached = tracer.attach(static_cast<pid_t>(said->number));
            child.say({attached ? Word::Ready : Word::Ended, 0});
        } else if (said->word == Word::Stop) {
            tracer.look();
            tracer.detach();
            attached = false;
            for (const auto& [number, times] :
                 said->number != 0 ? tracer.by_number() : std::map<uint64_t, uint64_t>()) {
                std::cerr << "quiet: system call " << number << ", " << times << " times\n";
            }
            child.say({Word::Ready, static_cast<int64_t>(tracer.calls())});
        } else {
            return 0;
        }
    }
}

struct Watched {
    Counted counted;
    uint64_t system_calls = 0;
    bool possible = false;
};

// Counts the operations of `thread` while `work` runs. If none are expected, any operations are listed on
// stderr.
template <typename Work>
Watched watch(const Line& parent, pid_t thread, bool expect_none, Work&& work) {
    Watched seen;
    if (parent.ask({Word::Watch, thread}).word != Word::Ready) {
        return seen;
    }
    start_counting(thread);
    work();
    seen.counted = stop_counting();
    seen.system_calls = static_cast<uint64_t>(parent.ask({Word::Stop, expect_none}).number);
    seen.possible = true;
    return seen;
}

// Checks both counters, with a thread that performs known operations, and spins before and after.
bool counters_work(const Line& parent) {
    std::atomic<pid_t> id{0};
    std::atomic<int> stage{0};
    std::thread known([&] {
        // a thread's first allocation requests an arena from the kernel
        void* volatile first = std::malloc(64);
        std::free(first);
        id = static_cast<pid_t>(syscall(SYS_gettid));
        while (stage != 1) {
        }
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        for (uint64_t i = 0; i < kKnown.locks; ++i) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        for (uint64_t i = 0; i < kKnownSystemCalls - 1; ++i) {
            syscall(SYS_getppid);
        }
        for (uint64_t i = 0; i < kKnown.heap / 2; ++i) {
            void* volatile memory = std::malloc(64);
            std::free(memory);
        }
        stage = 2;
        while (stage != 3) {
        }
    });
    while (id == 0) {
    }
    const Watched seen = watch(parent, id, false, [&] {
        stage = 1;
        while (stage != 2) {
        }
    });
    stage = 3;
    known.join();
    // The counter itself calls gettid once.
    const bool works = seen.possible && seen.counted == kKnown && seen.system_calls == kKnownSystemCalls;
    if (!works) {
        std::cerr << "quiet: a thread with 6 heap calls, 2 locks and 5 system calls was counted as "
                  << seen.counted.heap << ", " << seen.counted.locks << " and " << seen.system_calls
                  << (seen.possible ? "\n" : " (no ptrace here)\n");
    }
    return works;
}

// The thread of this process that may use only `cpu`: the worker. All others are pinned to the main one.
pid_t thread_on(unsigned cpu) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        const std::string name = entry.path().filename();
        pid_t thread = 0;
        std::from_chars(name.data(), name.data() + name.size(), thread);
        cpu_set_t set;
        if (sched_getaffinity(thread, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1 &&
            CPU_ISSET(cpu, &set)) {
            return thread;
        }
    }
    return 0;
}

bool pass_packets(const TrialPorts& ports, const worker::WorkerSet& workers) {
    const auto received = [&] { return workers.inspect().counter({0}, stats::Counter::RxPackets); };
    const uint64_t before = received();
    double seconds = 0;
    // New connections first, half of them counted, then all of them in random order.
    TrialResult result = run_trial(ports, {.rate = kRate / 4,
                                           .seconds = kSecondsMax,
                                           .first_flow = kFlows / 2,
                                           .flows = kFlows / 2,
                                           .order = FlowOrder::Once});
    bool sound = result.wrong == 0;
    while (received() - before < kPackets && seconds < kSecondsMax) {
        result = run_trial(ports, {.rate = kRate, .seconds = 1, .flows = kFlows});
        seconds += result.seconds;
        sound = sound && result.wrong == 0;
    }
    const uint64_t packets = received() - before;
    print_value("quiet_packets", static_cast<double>(packets), "packets");
    print_value("quiet_connections", static_cast<double>(workers.inspect().worker({0}).connections),
                "connections");
    if (!sound || packets < kPackets || workers.inspect().worker({0}).connections < kFlows / 2) {
        std::cerr << "quiet: the worker passed too little, or the wrong packets\n";
        return false;
    }
    return true;
}

// Both threads poll, and packets pass only while both have a CPU. The session is new, because the kernel may
// share CPUs between sessions before it applies nice values.
void go_first() {
    if (setsid() >= 0) {
        std::ofstream("/proc/self/autogroup") << "-20";  // not there in every kernel
    }
    setpriority(PRIO_PROCESS, 0, -20);
}

int measure(const Line& parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // Ctrl-C now reaches the parent only
    go_first();
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    std::array<unsigned, 2> cpus{};
    for (unsigned cpu = 0, found = 0; cpu < CPU_SETSIZE && found < cpus.size(); ++cpu) {
        if (CPU_ISSET(cpu, &allowed)) {
            cpus[found++] = cpu;
        }
    }
    auto eal = drivers::Eal::start({.worker_cpus = {cpus[1]},
                                    .main_cpu = cpus[0],
                                    .memory_mb = 512,
                                    .pci_allow = {},
                                    .file_prefix = "penstock-quiet",
                                    .extra_args = {},
                                    .sink = {}});
    if (!eal) {
        std::cerr << "quiet: " << eal.error().what << "\n";
        return 1;
    }
    if (!counters_work(parent)) {
        return 1;
    }
    print_fingerprint();
    rte_mempool* const pool =
        rte_pktmbuf_pool_create("quiet", 65'535, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    PENSTOCK_CHECK(pool != nullptr);
    bool passed = false;
    {
        const RingWire up("up", pool), cluster("cluster", pool);
        worker::WorkerSetOptions options{.lcores = (*eal)->worker_lcores(),
                                         .cpus = (*eal)->worker_cpus(),
                                         .connections_per_worker = kConnections,
                                         .ports = {}};
        options.ports = {{.id = kUp, .dpdk_port = up.gateway_end(), .mac = kUpMac},
                         {.id = kCluster, .dpdk_port = cluster.gateway_end(), .mac = kClusterMac}};
        auto workers = worker::WorkerSet::start(
            std::move(options), make_snapshot(lb::SourceMode::Translate, kEndpointsPerService));
        if (!workers) {
            std::cerr << "quiet: " << workers.error().what << "\n";
            return 1;
        }
        const TrialPorts ports{.clients = up.other_end(), .endpoints = cluster.other_end(), .pool = pool};
        // Once, uncounted: the dynamic linker resolves functions at their first call.
        const TrialResult warm = run_trial(
            ports,
            {.rate = kRate / 4, .seconds = kSecondsMax, .flows = kFlows / 2, .order = FlowOrder::Once});
        PENSTOCK_CHECK(warm.wrong == 0 && warm.returned > 0);
        bool enough = false;
        const Watched seen =
            watch(parent, thread_on(cpus[1]), true, [&] { enough = pass_packets(ports, **workers); });
        if (!seen.possible || !enough) {
            return 1;
        }
        print_value("quiet_heap_calls", static_cast<double>(seen.counted.heap), "calls");
        print_value("quiet_locks", static_cast<double>(seen.counted.locks), "locks");
        print_value("quiet_system_calls", static_cast<double>(seen.system_calls), "calls");
        print_gate_at_most(
            "G15", static_cast<double>(seen.counted.heap + seen.counted.locks + seen.system_calls), 0);
        passed = true;
    }
    rte_mempool_free(pool);
    return passed ? 0 : 1;
}

}  // namespace
}  // namespace penstock::perf

int main() {
    using namespace penstock::perf;
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) {
        return 1;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        const Line parent(ends[1]);
        const int result = measure(parent);
        std::cout.flush();
        parent.say({Word::Ended, 0});
        return result;
    }
    close(ends[1]);
    trace(Line(ends[0]));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
