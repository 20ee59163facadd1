// SPDX-License-Identifier: Apache-2.0
// Sequences of packets through the whole pipeline, from parsing to transmission, on one, two and three
// workers and from any queue. An input is a program. Its steps are packets of every kind that the gateway
// forwards or rejects (whole, fragmented or corrupted, from the wire and from Linux), replies and ICMP errors
// to packets sent before, time that passes, and configuration changes. A judge checks each outcome.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "dataplane/base/check.hpp"
#include "dataplane/pipeline/fragments/fragment_table.hpp"

#include "tests/fuzz/pipeline/grammar.hpp"
#include "tests/fuzz/pipeline/judge.hpp"
#include "tests/fuzz/pipeline/world.hpp"
#include "tests/fuzz/support/digest.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::fuzz {
namespace {

using test::Outcome;
using test::VirtualGateway;

constexpr uint32_t kStepsMax = 64;
constexpr size_t kRemembered = 8;  // packets on which later ones may be based

// Small tables, so that a program fills them.
VirtualGateway::Options options_for(uint32_t workers) {
    return {.workers = workers,
            .connections = workers == 1 ? 16U : 64U,
            .snat_ports = workers == 1 ? nat::PortRange{1024, 1087} : nat::PortRange{1024, 8191},
            .rejects_per_second = kAnswersPerSecond,
            .rejects_burst = kAnswersBurst,
            .errors_per_second = kAnswersPerSecond,
            .errors_burst = kAnswersBurst,
            .affinity_entries = 64,
            .services = 24,
            .backends = 48,
            .secrets_from = workers};
}

class Program {
 public:
    Program(VirtualGateway& gateway, uint32_t workers, ByteView bytes)
        : gateway_(gateway), workers_(workers), choices_(bytes), judge_(gateway, workers) {}

    void run() {
        gateway_.forget();
        for (uint32_t step = 0; step < kStepsMax && !choices_.are_over(); ++step) {
            do_step();
            judge_.audit();
        }
        expire_fragments();
        if (digest.is_wanted) {
            add_counters();
        }
    }

 private:
    void do_step() {
        const uint32_t kind = choices_.below(16);
        switch (kind) {
            case 11:
                return send_in_fragments();
            case 12:
                return reconfigure();
            case 13:
                return pass_time();
            case 15:
                return send(raw_frame(choices_));
            default:
                break;
        }
        if (kind < 4 || kind > 10 || passed_.empty()) {
            return send(fresh_packet(choices_));
        }
        send(kind == 10 ? error_about(choices_, somebody())
             : kind < 7 ? next_packet(choices_, somebody())
                        : reply_to(choices_, somebody()));
    }

    const Passed& somebody() { return passed_[choices_.below(static_cast<uint32_t>(passed_.size()))]; }

    void send(Arrived arrived) {
        spoil(choices_, arrived);
        deliver(std::move(arrived));
    }

    void deliver(Arrived arrived) {
        const WorkerId queue{static_cast<uint8_t>(choices_.below(workers_))};
        Outcome outcome = arrived.from_host ? gateway_.send_from_host(arrived.frame, arrived.port, queue)
                                            : gateway_.send(arrived.frame, arrived.port, queue);
        if (is_traced()) {
            tell(arrived, outcome);
        }
        add(outcome);
        judge_.judge(arrived, outcome, rules_);
        judge_released();
        const bool is_sent = outcome.verdict == Verdict::Transmit ||
                             (outcome.verdict == Verdict::Punt && outcome.frame != arrived.frame);
        if (is_sent && outcome.frame.size() >= kEtherBytes) {
            remember({std::move(arrived), std::move(outcome.frame), outcome.egress,
                      outcome.verdict == Verdict::Punt});
        }
    }

    // Waiting fragments, as soon as their datagram's fate is known. Packets from the host never wait.
    void judge_released() {
        for (const Outcome& released : gateway_.take_released()) {
            const Arrived arrived{released.came, NicPortId{0}, false};
            if (is_traced()) {
                tell(arrived, released);
            }
            add(released);
            judge_.judge(arrived, released, rules_);
        }
    }

    static void add(const Outcome& outcome) {
        if (digest.is_wanted) {
            digest.add(static_cast<uint64_t>(outcome.verdict) | static_cast<uint64_t>(outcome.reason) << 8 |
                       uint64_t{outcome.egress.value} << 16 | uint64_t{outcome.worker.value} << 24);
            digest.add(outcome.frame);
        }
    }
    void add_counters() const {
        for (uint32_t w = 0; w < workers_; ++w) {
            stats::WorkerCounters& counters = gateway_.worker(w).count();
            for (size_t i = 0; i < stats::kCounters; ++i) {
                digest.add(counters[static_cast<stats::Counter>(i)].read());
            }
            for (size_t i = 0; i < kDropReasons; ++i) {
                digest.add(counters[static_cast<DropReason>(i)].read());
            }
        }
    }

    static bool is_traced() {
        static const bool is_asked_for = std::getenv("PENSTOCK_TRACE") != nullptr;
        return is_asked_for;
    }
    static void tell(const Arrived& arrived, const Outcome& outcome) {
        const std::string reason(outcome.verdict == Verdict::Drop ? text_of(outcome.reason).counter : "");
        std::fprintf(stderr, "port %u%s %s\n    %s %s by port %u, worker %u\n", unsigned{arrived.port.value},
                     arrived.from_host ? " from host" : "", test::to_scapy(arrived.frame).c_str(),
                     to_string(outcome.verdict), reason.c_str(), unsigned{outcome.egress.value},
                     unsigned{outcome.worker.value});
    }

    void remember(Passed passed) {
        if (passed_.size() < kRemembered) {
            passed_.push_back(std::move(passed));
        } else {
            passed_[next_++ % kRemembered] = std::move(passed);
        }
    }

    void send_in_fragments() {
        const uint32_t whose = choices_.below(3);
        const Arrived whole = passed_.empty() || whose == 0 ? fresh_packet(choices_)
                              : whose == 1                  ? reply_to(choices_, somebody())
                                                            : next_packet(choices_, somebody());
        for (Arrived& fragment : fragments_of(choices_, whole)) {
            deliver(std::move(fragment));
        }
    }

    void advance(uint64_t ms) {
        gateway_.advance_milliseconds(ms);
        judge_.pass_milliseconds(ms);
    }

    void pass_time() {
        static constexpr uint32_t kSpans[] = {
            1,      100,     900,     1'100,    5'000,
            31'000, 121'000, 301'000, 7'200'000};  // ms; timeouts lie between these values
        advance(choices_.one_of(kSpans));
        if (choices_.one_in(2)) {
            gateway_.age();
            gateway_.expire_fragments();
            judge_released();
        }
    }

    // No fragment waits indefinitely.
    void expire_fragments() {
        if (gateway_.fragments_waiting() == 0) {
            return;
        }
        advance(pipeline::kFragmentWaitMs);
        gateway_.expire_fragments();
        judge_released();
        PENSTOCK_CHECK(gateway_.fragments_waiting() == 0);
        judge_.audit();
    }

    void reconfigure() {
        switch (choices_.below(9)) {
            case 0:
                rules_.publication = static_cast<uint8_t>(choices_.below(kPublications));
                break;
            case 1:
                rules_.has_blocklist = !rules_.has_blocklist;
                break;
            case 2:
                rules_.mtu_choice = static_cast<uint8_t>(choices_.below(kMtus));
                break;
            case 3: {
                const uint32_t choice = choices_.below(4);
                rules_.has_present_vips = choice % 2 == 1;
                rules_.has_link_vips = choice >= 2;
                break;
            }
            case 4:
                rules_.has_unresolved = choices_.one_in(2);
                break;
            case 5:
                rules_.rejects_closed_vip_ports = choices_.one_in(2);
                break;
            case 6:
                rules_.clamps_mss = !rules_.clamps_mss;
                break;
            case 8:
                rules_.picks_up_midstream = !rules_.picks_up_midstream;
                break;
            default:
                rules_.aborts_sctp = choices_.one_in(2);
                rules_.passes_ip_options = !choices_.one_in(2);
                break;
        }
        gateway_.use(snapshot_of(rules_));
    }

    VirtualGateway& gateway_;
    uint32_t workers_;
    Choices choices_;
    Judge judge_;
    Rules rules_;
    std::vector<Passed> passed_;
    size_t next_ = 0;
};

VirtualGateway& gateway_of(uint32_t workers) {
    static std::array<std::unique_ptr<VirtualGateway>, kWorkersMost> gateways;
    std::unique_ptr<VirtualGateway>& gateway = gateways[workers - 1];
    if (!gateway) {
        gateway = std::make_unique<VirtualGateway>(options_for(workers));
        gateway->use(snapshot_at_start());
        gateway->remember();
    }
    return *gateway;
}

}  // namespace
}  // namespace penstock::fuzz

// Allocations and stack frames are most of the cost of AddressSanitizer here. Long records of freed memory,
// and deep stacks of its allocators, make each of them expensive. To investigate a failure, enable more with
// ASAN_OPTIONS.
extern "C" const char* __asan_default_options() {
    return "malloc_context_size=1:max_malloc_fill_size=64:quarantine_size_mb=4:thread_local_quarantine_size_"
           "kb=256"
           ":detect_stack_use_after_return=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 0) {
        const uint32_t workers = 1 + data[0] % penstock::fuzz::kWorkersMost;
        penstock::fuzz::Program(penstock::fuzz::gateway_of(workers), workers, {data + 1, size - 1}).run();
    }
    return 0;
}
