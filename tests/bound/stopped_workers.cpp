// SPDX-License-Identifier: Apache-2.0
#include "tests/bound/stopped_workers.hpp"

#include <rte_cycles.h>

#include <cstring>

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/worker/worker_set_impl.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/reply_hashes.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace {

constexpr uint64_t kTicksPerRound = 100;              // less than a round takes: explain reads the TSC itself
constexpr uint32_t kUnlimited = 1'000'000'000;        // answers per second
constexpr uint16_t kHeadroom = 128, kTailroom = 128;  // of an mbuf

pipeline::RejectLimiter unlimited(const pipeline::WorkerContext& context) {
    return {kUnlimited, kUnlimited, context.rate};
}

void set_state(pipeline::WorkerContext& own, ConnectionIndex index, auto before, auto after) {
    auto& open = own.counters.backends[own.connections.at(index).backend.value].open;
    if (conn::is_open(before) != conn::is_open(after)) {
        conn::is_open(after) ? open.add(1) : open.subtract(1);
    }
    own.connections.set_state(index, after, own.now_coarse);
}

}  // namespace

StoppedWorkers::StoppedWorkers(uint32_t count) : count_(count) {
    worker::WorkerSetOptions options;
    options.connections_per_worker = 8'192;
    options.affinity_entries = 4'096;
    copies_ = *copies::Store::create(8'192, HashKey::random());
    options.copies = copies_.get();
    for (uint32_t w = 0; w < count_; ++w) {
        options.lcores.push_back(w + 1);
        options.cpus.push_back(worker_cpu());
    }
    // Without receive queues: the workers never receive anything themselves.
    for (const auto& [id, mac] : {std::pair(kUp, kUpMac), std::pair(kCluster, kClusterMac)}) {
        worker::PortPlan& port = options.ports.emplace_back();
        port.id = id;
        port.rx_queues = 0;
        port.tx_queues = static_cast<uint16_t>(count_);
        port.mac = mac;
        if (count_ == 4) {
            port.flow_stays_on_queue = true;
            port.reply_hash = hash_in_turn(128, count_);
        }
    }
    auto started = worker::WorkerSet::start(std::move(options), std::make_unique<config::Snapshot>());
    PENSTOCK_CHECK(started);
    workers_ = std::move(*started);
    workers_->stop();
    reading_ = {rte_rdtsc()};
    for (uint8_t w = 0; w < count_; ++w) {
        // Rate limits depend on the time, which explain does not predict.
        pipeline::WorkerContext& own = context({w});
        own.rejects = unlimited(own);
        own.flow_orders.answering = unlimited(own);
        own.expiry_answers = {kUnlimited, kUnlimited, own.rate};
    }
}

void StoppedWorkers::publish(const config::Snapshot& snapshot) {
    workers_->publish(std::make_unique<config::Snapshot>(snapshot));
}

pipeline::WorkerContext& StoppedWorkers::context(WorkerId id) {
    return const_cast<pipeline::WorkerContext&>(workers_->impl().workers_[id.value]->context());
}

PacketResult StoppedWorkers::run(std::vector<uint8_t> frame, NicPortId port, WorkerId receiver) {
    const uint64_t opened = sum(stats::Counter::NewConnections);
    const uint64_t reclaimed = sum(stats::Counter::ReclaimedSnatPorts);
    pipeline::Arrival arrival{port, {}, 0};
    arrival.note.receiver = receiver;
    WorkerId self = receiver;
    for (uint32_t handoffs = 0;; ++handoffs) {
        std::vector<uint8_t> buffer(kHeadroom + frame.size() + kTailroom);
        std::memcpy(buffer.data() + kHeadroom, frame.data(), frame.size());
        pipeline::WorkerContext& own = context(self);
        own.begin_round(workers_->impl().publisher->read(), next_reading());
        burst_.count = 0;
        burst_.add(nullptr, buffer.data() + kHeadroom, static_cast<uint16_t>(frame.size()),
                   static_cast<uint16_t>(frame.size() + kTailroom), arrival, kHeadroom);
        burst_.looks_first =
            arrival.note.handoffs > 0 || own.ports[arrival.port.value].promises.flow_stays_on_queue;
        burst_.was_handed = arrival.note.handoffs > 0;
        pipeline::run_stages(own, burst_);
        own.own_segments.count = 0;
        frame.assign(burst_.data[0], burst_.data[0] + burst_.length[0]);
        if (burst_.verdict[0] != Verdict::Handoff || handoffs == pipeline::handoffs_max(count_)) {
            break;
        }
        arrival = burst_.arrival[0];
        arrival.note = arrival.note.crossing();
        self = burst_.handoff_to[0];
    }
    const Verdict verdict = burst_.verdict[0];
    return {.verdict = verdict,
            .reason = burst_.reason[0],
            .is_answer = burst_.answers[0],
            .egress = verdict == Verdict::Punt ? burst_.arrival[0].port : burst_.egress[0],
            .next_hop = burst_.next_hop[0],
            .frame = std::move(frame),
            .worker = self,
            .opened = sum(stats::Counter::NewConnections) > opened,
            .reclaimed = sum(stats::Counter::ReclaimedSnatPorts) > reclaimed};
}

std::pair<pipeline::WorkerContext*, ConnectionIndex> StoppedWorkers::some_connection(Prng& random) {
    uint64_t count = 0;
    std::pair<pipeline::WorkerContext*, ConnectionIndex> chosen{};
    for_each_unit([&](pipeline::WorkerContext& own, ConnectionIndex index) {
        if (random.below(++count) == 0) {
            chosen = {&own, index};
        }
    });
    return chosen;
}

void StoppedWorkers::close_all() {
    for_each_unit([](pipeline::WorkerContext& own, ConnectionIndex index) {
        pipeline::close_connection(own, index, pipeline::Removal::Expired);
    });
}

bool StoppedWorkers::make_copy(pipeline::WorkerContext& own, ConnectionIndex index) {
    if (!copies_->put(own.connections.connection(index)).is_set()) {
        return false;
    }
    pipeline::close_connection(own, index, pipeline::Removal::Expired);
    return true;
}

void StoppedWorkers::establish_all() {
    for_each_unit([](pipeline::WorkerContext& own, ConnectionIndex index) {
        const conn::Entry& entry = own.connections.at(index);
        if (entry.is_tcp() && entry.tcp_state() <= conn::TcpState::SynReceived) {
            set_state(own, index, entry.tcp_state(), conn::TcpState::Established);
        } else if (entry.is_sctp() && conn::is_opening(entry.sctp_state())) {
            set_state(own, index, entry.sctp_state(), conn::SctpState::Established);
        }
    });
}

void StoppedWorkers::change_state(Prng& random, pipeline::WorkerContext& own, ConnectionIndex index) {
    const conn::Entry& entry = own.connections.at(index);
    if (entry.protocol == Protocol::Udp) {
        own.connections.set_state(index, conn::DatagramState::TwoWay, own.now_coarse);
    } else if (entry.is_sctp()) {
        set_state(own, index, entry.sctp_state(),
                  static_cast<conn::SctpState>(random.below(conn::kSctpStates)));
    } else {
        set_state(own, index, entry.tcp_state(), static_cast<conn::TcpState>(random.below(conn::kTcpStates)));
    }
}

TscTime StoppedWorkers::next_reading() {
    reading_.value += kTicksPerRound;
    return reading_;
}

uint64_t StoppedWorkers::sum(stats::Counter counter) const {
    uint64_t total = 0;
    for (uint8_t w = 0; w < count_; ++w) {
        total += workers_->inspect().counter({w}, counter);
    }
    return total;
}

}  // namespace penstock::test
