// Programs of packets through the whole pipeline, from parsing to what would be transmitted, on one, two and three workers and from
// whatever queue. An input is a program: packets of every kind that the gateway knows or refuses, whole, in fragments or spoiled, from the
// wire and from Linux, replies and ICMP errors to what it has sent before, time that passes, configurations that change. A judge looks at
// each outcome.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "dataplane/base/check.hpp"
#include "dataplane/pipeline/fragment_table.hpp"

#include "tests/fuzz/pipeline/grammar.hpp"
#include "tests/fuzz/pipeline/judge.hpp"
#include "tests/fuzz/pipeline/world.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::fuzz {
namespace {

using test::Outcome;
using test::VirtualGateway;

constexpr uint32_t kWorkersMost = 3;
constexpr uint32_t kStepsMax = 64;
constexpr size_t kRemembered = 8;  // packets that later ones may follow

// Small tables, so that a program finds their ends.
VirtualGateway::Options options_for(uint32_t workers) {
    return {.workers = workers,
            .connections = workers == 1 ? 16U : 64U,
            .snat_ports = workers == 1 ? nat::PortRange{1024, 1087} : nat::PortRange{1024, 8191},
            .rejects_per_second = 4,
            .rejects_burst = 4,
            .affinity_entries = 64,
            .secrets_from = workers};
}

class Program {
 public:
    Program(VirtualGateway& gateway, uint32_t workers, ByteView bytes) : gateway_(gateway), workers_(workers), choices_(bytes) {}

    void run() {
        gateway_.forget();
        for (uint32_t step = 0; step < kStepsMax && !choices_.are_over(); ++step) {
            do_step();
            Judge::audit(gateway_, workers_);
        }
        expire_fragments();
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
        deliver(arrived);
    }

    void deliver(const Arrived& arrived) {
        const WorkerId queue{static_cast<uint8_t>(choices_.below(workers_))};
        const Outcome outcome = arrived.from_host ? gateway_.send_from_host(arrived.frame, arrived.port, queue)
                                                  : gateway_.send(arrived.frame, arrived.port, queue);
        if (is_traced()) {
            tell(arrived, outcome);
        }
        judge_.judge(arrived, outcome, rules_);
        judge_released();
        const bool is_sent = outcome.verdict == Verdict::Transmit || (outcome.verdict == Verdict::Punt && outcome.frame != arrived.frame);
        if (is_sent && outcome.frame.size() >= kEtherBytes) {
            remember({arrived, outcome.frame, outcome.egress, outcome.verdict == Verdict::Punt});
        }
    }

    // Fragments that waited, as soon as it is known what becomes of them. What the host sends never waits.
    void judge_released() {
        for (const Outcome& released : gateway_.take_released()) {
            const Arrived arrived{released.came, NicPortId{0}, false};
            if (is_traced()) {
                tell(arrived, released);
            }
            judge_.judge(arrived, released, rules_);
        }
    }

    static bool is_traced() {
        static const bool is_asked_for = std::getenv("PENSTOCK_TRACE") != nullptr;
        return is_asked_for;
    }
    static void tell(const Arrived& arrived, const Outcome& outcome) {
        const std::string reason(outcome.verdict == Verdict::Drop ? text_of(outcome.reason).counter : "");
        std::fprintf(stderr, "port %u%s %s\n    %s %s by port %u, worker %u\n", unsigned{arrived.port.value},
                     arrived.from_host ? " from host" : "", test::to_scapy(arrived.frame).c_str(), to_string(outcome.verdict),
                     reason.c_str(), unsigned{outcome.egress.value}, unsigned{outcome.worker.value});
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
        for (const Arrived& fragment : fragments_of(choices_, whole)) {
            deliver(fragment);
        }
    }

    void pass_time() {
        static constexpr uint32_t kSpans[] = {1, 100, 900, 1'100, 5'000, 31'000, 121'000, 301'000, 7'200'000};  // ms; limits lie between
        gateway_.advance_milliseconds(choices_.one_of(kSpans));
        if (choices_.one_in(2)) {
            gateway_.age();
            gateway_.expire_fragments();
            judge_released();
        }
    }

    // Nobody waits for ever.
    void expire_fragments() {
        if (gateway_.fragments_waiting() == 0) {
            return;
        }
        gateway_.advance_milliseconds(pipeline::kFragmentWaitMs);
        gateway_.expire_fragments();
        judge_released();
        PENSTOCK_CHECK(gateway_.fragments_waiting() == 0);
        Judge::audit(gateway_, workers_);
    }

    void reconfigure() {
        switch (choices_.below(6)) {
            case 0:
                rules_.publication = static_cast<uint8_t>(choices_.below(kPublications));
                return gateway_.publish(services_of(rules_.publication));
            case 1:
                rules_.has_blocklist = !rules_.has_blocklist;
                return gateway_.set_blocked_sources(rules_.has_blocklist ? blocklist() : route::PrefixSet());
            case 2: {
                static constexpr uint16_t kMtus[] = {1500, 1280, 576, 9000};
                rules_.mtu = choices_.one_of(kMtus);
                return gateway_.set_mtu(rules_.mtu);
            }
            case 3:
                rules_.has_present_vips = choices_.one_in(2);
                return gateway_.set_present_vips(rules_.has_present_vips ? kPresentVips : std::vector<IpAddr>());
            case 4:
                return gateway_.set_unresolved(choices_.one_in(2) ? std::vector<uint8_t>{11, 13} : std::vector<uint8_t>());
            default:
                return gateway_.set_rejects_closed_vip_ports(choices_.one_in(2));
        }
    }

    static const route::PrefixSet& blocklist() {
        static const route::PrefixSet list({*Prefix::make(kBlocked4, 32), *Prefix::make(kBlocked6, 128)});
        return list;
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
        gateway->publish(services_of(0));
        gateway->remember();
    }
    return *gateway;
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 0) {
        const uint32_t workers = 1 + data[0] % penstock::fuzz::kWorkersMost;
        penstock::fuzz::Program(penstock::fuzz::gateway_of(workers), workers, {data + 1, size - 1}).run();
    }
    return 0;
}
