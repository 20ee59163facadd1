// SPDX-License-Identifier: Apache-2.0
// Cost of a configuration change in penstockd, from a message's bytes to the moment when workers would have
// the new snapshot: decoding, checking, accepting, compiling, building the table, answering. There are no
// workers, so publishing is a pointer assignment. The grace period is measured by perf/quiet and perf/wire.
// Output: lines of `name value unit`.
//
//   gateway_bench [--quick] [--state-file FILE]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "control/log/log.hpp"
#include "control/rpc/state_message.hpp"
#include "dataplane/base/check.hpp"
#include "perf/control/population.hpp"

namespace penstock::perf {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point then) {
    return std::chrono::duration<double, std::micro>(Clock::now() - then).count();
}

double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
    std::ifstream file("/proc/self/statm");
    double size = 0, resident = 0;
    file >> size >> resident;
    return resident * 4'096;
}

void print(const std::string& name, double value, const char* unit) {
    std::printf("%s %.1f %s\n", name.c_str(), value, unit);
    std::fflush(stdout);
}

// The part of penstockd between the stream and the workers.
class Gateway {
 public:
    explicit Gateway(const std::string& state_file)
        : reconciler_(
              {.identity = {.gateway_name = "bench"},
               .snapshots = {.twins = {{"pen0", {IpAddr::v4(192, 0, 2, 1), IpAddr::v4(192, 0, 2, 2)}}},
                             .snat_addresses = {},
                             .snat_ports = {},
                             .host_ephemeral = {}},
               .state_file = state_file}) {
        auto linux_state = std::make_shared<drivers::MirroredState>();
        linux_state->addresses = {{{0}, IpAddr::v4(192, 0, 2, 1), 24}, {{0}, IpAddr::v4(192, 0, 2, 2), 24}};
        now_ = reconciler_.begin(std::nullopt, std::move(linux_state));
        reconciler_.start([this](std::unique_ptr<config::Snapshot> next) {
            now_ = std::move(next);  // frees the predecessor, as Publisher does
            ++publications_;
        });
    }

    // The gRPC thread's work for a message.
    template <typename Done>
    void receive(const std::string& bytes, Done done) {
        v1::StateMessage message;
        PENSTOCK_CHECK(message.ParseFromString(bytes));
        auto whole = parts_.add(message);
        PENSTOCK_CHECK(whole);
        if (*whole) {
            rpc::StateUpdate& update = (*whole)->update;
            update.received = Clock::now();
            update.done = std::move(done);
            reconciler_.submit(std::move(update));
        }
    }
    // The number of service ports in the answer.
    size_t apply(const std::vector<std::string>& parts) {
        std::promise<size_t> applied;
        for (const std::string& part : parts) {
            receive(part, [&](Result<rpc::UpdateResult> result) {
                PENSTOCK_CHECK(result);
                applied.set_value(result->services.size());
            });
        }
        return applied.get_future().get();
    }
    [[nodiscard]] uint64_t publications() const noexcept { return publications_; }

 private:
    std::unique_ptr<config::Snapshot> now_;
    std::atomic<uint64_t> publications_{0};
    rpc::StateParts parts_;
    gateway::Reconciler reconciler_;  // last: its thread ends before its outputs are destroyed
};

class Changes {
 public:
    explicit Changes(const Population& population, uint64_t version)
        : population_(population), version_(version) {}
    std::string next() {
        ++changes_;
        return one_endpoint(population_, static_cast<uint32_t>(random_() % population_.services),
                            changes_ % 60 + 1, ++version_);
    }

 private:
    Population population_;
    uint64_t version_;
    uint32_t changes_ = 0;
    std::mt19937 random_{1};
};

// One change after another on an idle gateway.
void measure_one(Gateway& gateway, Changes& changes, uint32_t count, const std::string& suffix) {
    std::vector<double> us;
    for (uint32_t i = 0; i < count; ++i) {
        const std::vector<std::string> message{changes.next()};
        const auto began = Clock::now();
        gateway.apply(message);
        us.push_back(us_since(began));
    }
    std::ranges::sort(us);
    print("gateway_apply_one_p50_" + suffix, us[us.size() / 2], "us");
    print("gateway_apply_one_p99_" + suffix, us[us.size() * 99 / 100], "us");
    print("gateway_apply_one_max_" + suffix, us.back(), "us");
}

// A thousand changes a second for some seconds. Each is sent when it is due, even if earlier ones are
// unanswered.
void measure_storm(Gateway& gateway, Changes& changes, uint32_t seconds, const std::string& suffix) {
    constexpr uint32_t kPerSecond = 1'000;
    const uint32_t count = seconds * kPerSecond;
    std::vector<std::string> messages;
    for (uint32_t i = 0; i < count; ++i) {
        messages.push_back(changes.next());
    }
    std::vector<double> us(count);
    std::atomic<uint32_t> answered{0};
    const uint64_t publications = gateway.publications();
    const double cpu = cpu_seconds();
    const auto began = Clock::now();
    for (uint32_t i = 0; i < count; ++i) {
        const auto due = began + std::chrono::microseconds(1'000'000 / kPerSecond) * i;
        std::this_thread::sleep_until(due);
        gateway.receive(messages[i], [&, i, due](const Result<rpc::UpdateResult>& result) {
            PENSTOCK_CHECK(result);
            us[i] = us_since(due);
            ++answered;
        });
    }
    while (answered < count) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const double took = us_since(began) / 1e6;
    std::ranges::sort(us);
    print("gateway_storm_rate_" + suffix, count / took, "changes/s");
    print("gateway_storm_p50_" + suffix, us[count / 2], "us");
    print("gateway_storm_p99_" + suffix, us[count * 99 / 100], "us");
    print("gateway_storm_cpu_" + suffix, (cpu_seconds() - cpu) / took * 100, "percent_of_a_core");
    print("gateway_storm_publications_" + suffix, double(gateway.publications() - publications) / took,
          "1/s");
}

void measure(const Population& population, uint32_t changes_count, const std::string& state_file) {
    const std::string suffix =
        std::to_string(population.services) + "x" + std::to_string(population.endpoints);
    const auto parts = full_state(population, 1);
    size_t wire_bytes = 0;
    for (const auto& part : parts) {
        wire_bytes += part.size();
    }
    const double endpoints = double(population.services) * population.endpoints;
    print("gateway_wire_bytes_per_endpoint_" + suffix, double(wire_bytes) / endpoints, "bytes");
    const double before = resident_bytes();
    Gateway gateway(state_file);
    auto began = Clock::now();
    PENSTOCK_CHECK(gateway.apply(parts) == population.services);
    print("gateway_apply_full_" + suffix, us_since(began) / 1e3, "ms");
    print("gateway_memory_per_endpoint_" + suffix, (resident_bytes() - before) / endpoints, "bytes");
    const auto again = full_state(population, 2);
    began = Clock::now();
    PENSTOCK_CHECK(gateway.apply(again) == 0);
    print("gateway_apply_equal_" + suffix, us_since(began) / 1e3, "ms");
    Changes changes(population, 2);
    measure_one(gateway, changes, changes_count, suffix);
    measure_storm(gateway, changes, changes_count / 500, suffix);
    print(
        "gateway_memory_peak_" + suffix,
        [] {
            rusage usage{};
            ::getrusage(RUSAGE_SELF, &usage);
            return double(usage.ru_maxrss) / 1'024;
        }(),
        "MiB");
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    bool quick = false;
    std::string state_file;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--quick") == 0) {
            quick = true;
        } else if (std::strcmp(argv[i], "--state-file") == 0 && i + 1 < argc) {
            state_file = argv[++i];
        } else {
            std::fprintf(stderr, "usage: gateway_bench [--quick] [--state-file FILE]\n");
            return 2;
        }
    }
    PENSTOCK_CHECK(penstock::log::set_level("", "error"));
    // Each in a process of its own, so that the memory is that of one population.
    for (const penstock::perf::Population& population :
         {penstock::perf::Population{10'000, 10}, {5'000, 50}}) {
        const pid_t child = ::fork();
        if (child == 0) {
            penstock::perf::measure(population, quick ? 500 : 2'500, state_file);
            std::_Exit(0);
        }
        int status = 0;
        PENSTOCK_CHECK(::waitpid(child, &status, 0) == child);
        if (status != 0) {
            return 1;
        }
    }
    return 0;
}
