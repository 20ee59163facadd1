// SPDX-License-Identifier: Apache-2.0
// Exhausted SNAT ports, in fast-forward: every packet passes the real stages, the clock is virtual, and idle
// connections are expired as in a worker, a slice of the table each millisecond. The SNAT addresses are
// shared with the host and have the default range: 36,280 ports each towards an endpoint.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/aging.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace snat_ports_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
constexpr uint32_t kVipBits = 80U << 24 | 11 << 16 | 12 << 8 | 10;
constexpr uint32_t kBackendBits = 10U << 24 | 80 << 16 | 2 << 8;  // and the host
constexpr L4Port kBackendPort = 9376;
constexpr uint32_t kUsablePorts = 36'280;

// The source or destination of a packet, in host order.
struct Socket {
    uint32_t address = 0;
    L4Port port = 0;
    bool operator==(const Socket&) const = default;
};
struct Segment {
    uint8_t flags;
    uint32_t seq = 0, ack = 0;
};

// A frame that is built once; sockets and numbers are replaced each time it is sent.
class Frame {
 public:
    explicit Frame(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
    void set_sockets(Socket source, Socket destination) {
        store(bytes_.data() + kAddresses,
              std::array{Be32::from_host(source.address), Be32::from_host(destination.address)});
        store(bytes_.data() + kPorts,
              std::array{Be16::from_host(source.port), Be16::from_host(destination.port)});
        store(bytes_.data() + kIpSum, Be16());
        uint32_t sum = 0;
        for (size_t at = kIp; at < kPorts; at += 2) {
            sum += load<Be16>(bytes_.data() + at).host();
        }
        sum = (sum & 0xffff) + (sum >> 16);
        store(bytes_.data() + kIpSum, Be16::from_host(static_cast<uint16_t>(~(sum + (sum >> 16)))));
    }
    void set_segment(Segment segment) {
        store(bytes_.data() + kPorts + 4,
              std::array{Be32::from_host(segment.seq), Be32::from_host(segment.ack)});
        bytes_[kPorts + 13] = segment.flags;
    }
    [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }

    static Socket source_of(const uint8_t* frame) {
        return {load<Be32>(frame + kAddresses).host(), load<Be16>(frame + kPorts).host()};
    }
    static Socket destination_of(const uint8_t* frame) {
        return {load<Be32>(frame + kAddresses + 4).host(), load<Be16>(frame + kPorts + 2).host()};
    }

 private:
    static constexpr size_t kIp = sizeof(packet::EthernetHeader), kIpSum = kIp + 10, kAddresses = kIp + 12,
                            kPorts = kIp + 20;
    std::vector<uint8_t> bytes_;
};

// The sockets of a packet after forwarding; nothing if it was not forwarded.
struct Left {
    Socket source, destination;
};

class Time {
 public:
    explicit Time(VirtualGateway& gateway) : gateway_(gateway) {}

    [[nodiscard]] uint64_t now_ms() const { return now_ms_; }
    // The next millisecond: idle connections expire, as in Worker::housekeeping().
    void pass() {
        ++now_ms_;
        pipeline::WorkerContext& worker = begin();
        pipeline::age_connections(worker, conn::units_per_tick(worker.connections.capacity()));
    }
    std::optional<Left> send(const Frame& frame, NicPortId port) {
        std::memcpy(buffer_.data(), frame.bytes().data(), frame.bytes().size());
        pipeline::WorkerContext& worker = begin();
        burst_.count = 0;
        burst_.add(nullptr, buffer_.data(), static_cast<uint16_t>(frame.bytes().size()), sizeof buffer_,
                   {port, {}, 0});
        pipeline::run_stages(worker, burst_);
        if (burst_.verdict[0] != Verdict::Transmit) {
            return std::nullopt;
        }
        return Left{Frame::source_of(burst_.data[0]), Frame::destination_of(burst_.data[0])};
    }

 private:
    pipeline::WorkerContext& begin() {
        pipeline::WorkerContext& worker = gateway_.worker(0);
        worker.begin_round(&gateway_.snapshot(),
                           TscTime{1'000'000'000'000} + worker.rate.milliseconds(now_ms_));
        return worker;
    }
    VirtualGateway& gateway_;
    pipeline::Burst burst_;
    std::array<uint8_t, 256> buffer_{};
    uint64_t now_ms_ = 0;
};

// Events that fall due within a few seconds.
template <typename Event>
class Agenda {
 public:
    void add(uint64_t due_ms, const Event& event) { slots_[due_ms % kSlots].push_back(event); }
    [[nodiscard]] std::vector<Event> due(uint64_t now_ms) {
        return std::exchange(slots_[now_ms % kSlots], {});
    }

 private:
    static constexpr uint64_t kSlots = 8'192;
    std::vector<std::vector<Event>> slots_{kSlots};
};

VirtualGateway::Options shared_with_host(std::vector<nat::SnatAddress> more = {}) {
    return {.connections = limits::kConnectionsDefault,
            .snat_shared_with_host = true,
            .more_snat = std::move(more)};
}

// Single queries of many clients at an even rate, each answered once: most within 50 ms, one in 64 after four
// seconds.
struct OneShots {
    uint64_t asked = 0, lost_questions = 0, lost_answers = 0;
};
OneShots ask_for(VirtualGateway& gateway, uint64_t seconds, uint64_t per_second) {
    gateway.publish(
        {TestService{.name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 53}}, .backends = {11}}});
    struct Answer {
        Socket to, asker;
    };
    Frame question(eth()
                       .from_mac(kClientMac.to_string())
                       .to_mac(kUpMac.to_string())
                       .ipv4("198.18.0.1", "80.11.12.10")
                       .udp(1, 53)
                       .build());
    Frame answer(eth()
                     .from_mac(backend_mac(11).to_string())
                     .to_mac(kClusterMac.to_string())
                     .ipv4("10.80.2.11", "10.80.2.1")
                     .udp(kBackendPort, 1)
                     .build());
    Time time(gateway);
    Agenda<Answer> answers;
    OneShots count;
    const auto deliver = [&] {
        for (const Answer& due : answers.due(time.now_ms())) {
            answer.set_sockets({kBackendBits + 11, kBackendPort}, due.to);
            const auto left = time.send(answer, kCluster);
            count.lost_answers +=
                left && left->destination == due.asker && left->source == Socket{kVipBits, 53} ? 0 : 1;
        }
    };
    while (time.now_ms() < seconds * 1'000) {
        time.pass();
        deliver();
        for (; count.asked < time.now_ms() * per_second / 1'000; ++count.asked) {
            const uint64_t n = count.asked;
            const Socket asker{(198U << 24 | 18U << 16) + 1 + static_cast<uint32_t>(n % 251),
                               static_cast<L4Port>(1'024 + n / 251 % 60'000)};
            question.set_sockets(asker, {kVipBits, 53});
            if (const auto left = time.send(question, kUp)) {
                answers.add(time.now_ms() + (n % 64 == 63 ? 4'000 : 1 + n % 50), {left->source, asker});
            } else {
                ++count.lost_questions;
            }
        }
    }
    for (int ms = 0; ms < 5'000; ++ms) {
        time.pass();
        deliver();
    }
    return count;
}

// If 36,280 ports rested for two minutes each, 302 connections a second would be possible.
TEST(OneShotUdp, SixHundredASecondToOneEndpointForTenMinutes_NAT002) {
    VirtualGateway gateway(shared_with_host());
    const OneShots count = ask_for(gateway, 600, 600);
    EXPECT_EQ(count.asked, 360'000u);
    EXPECT_EQ(count.lost_questions, 0u);
    EXPECT_EQ(count.lost_answers, 0u);
    EXPECT_LE(gateway.connections(), kUsablePorts);
}

TEST(OneShotUdp, FiveThousandASecondWithTwoSnatAddresses_NAT002) {
    VirtualGateway gateway(shared_with_host({{IpAddr::v4(10, 80, 2, 2), kCluster, true}}));
    const OneShots count = ask_for(gateway, 150, 5'000);
    EXPECT_EQ(count.asked, 750'000u);
    EXPECT_EQ(count.lost_questions, 0u);
    EXPECT_EQ(count.lost_answers, 0u);
}

// Clients that open a connection, send a request, get a response, and close. The path between clients and the
// gateway takes 100 ms. In one of eight connections the client's ACK is lost, and the endpoint sends its
// SYN+ACK again after a second.
class Clients {
 public:
    explicit Clients(Time& time) : time_(time) {}
    struct Service {
        L4Port port;
        uint8_t backend;
        uint32_t network;  // of its clients
    };
    // One more client of `service`.
    void begin(const Service& service) {
        const auto n = static_cast<uint32_t>(clients_.size());
        clients_.push_back({service,
                            {service.network + n / 50'000, static_cast<L4Port>(1'024 + n % 50'000)},
                            {},
                            n % 8 == 7});
        agenda_.add(time_.now_ms() + 1, {n, Step::Syn});
    }
    void work() {
        for (const Due& due : agenda_.due(time_.now_ms())) {
            act(clients_[due.client], due);
        }
    }
    // The number of served clients among those whose time is over.
    [[nodiscard]] uint32_t served(const Service& service) const { return tally(service, true); }
    [[nodiscard]] uint32_t begun(const Service& service) const { return tally(service, false); }

 private:
    enum class Step : uint8_t { Syn, SynAck, Ack, Question, Answer, Fin, LastFin };
    struct Due {
        uint32_t client;
        Step step;
    };
    struct Client {
        Service service;
        Socket socket;
        Socket snat;
        bool loses_ack;
        bool is_served = false;
    };
    [[nodiscard]] uint32_t tally(const Service& service, bool served_only) const {
        uint32_t count = 0;
        for (const Client& client : clients_) {
            count += client.service.port == service.port && (client.is_served || !served_only) ? 1 : 0;
        }
        return count;
    }
    bool forward(const Client& client, Segment segment) {
        up_.set_sockets(client.socket, {kVipBits, client.service.port});
        up_.set_segment(segment);
        const auto left = time_.send(up_, kUp);
        return left && left->source == client.snat &&
               left->destination == Socket{kBackendBits + client.service.backend, kBackendPort};
    }
    bool reverse(const Client& client, Segment segment) {
        down_.set_sockets({kBackendBits + client.service.backend, kBackendPort}, client.snat);
        down_.set_segment(segment);
        const auto left = time_.send(down_, kCluster);
        return left && left->destination == client.socket &&
               left->source == Socket{kVipBits, client.service.port};
    }
    void act(Client& client, const Due& due) {
        using F = packet::TcpFlags;
        constexpr uint32_t kIsn = 5'000, kTheirs = 9'000;
        const auto then = [&](uint64_t ms, Step step) {
            agenda_.add(time_.now_ms() + ms, {due.client, step});
        };
        switch (due.step) {
            case Step::Syn: {
                up_.set_sockets(client.socket, {kVipBits, client.service.port});
                up_.set_segment({F::kSyn, kIsn});
                const auto left = time_.send(up_, kUp);
                if (left) {
                    client.snat = left->source;
                    then(1, Step::SynAck);
                }
                return;
            }
            case Step::SynAck:
                if (reverse(client, {F::kSyn | F::kAck, kTheirs, kIsn + 1})) {
                    if (client.loses_ack) {
                        client.loses_ack = false;
                        return then(1'000, Step::SynAck);
                    }
                    then(200, Step::Ack);
                }
                return;
            case Step::Ack:
                if (forward(client, {F::kAck, kIsn + 1, kTheirs + 1})) {
                    then(1, Step::Question);
                }
                return;
            case Step::Question:
                if (forward(client, {F::kAck | F::kPsh, kIsn + 1, kTheirs + 1})) {
                    then(2, Step::Answer);
                }
                return;
            case Step::Answer:
                if (reverse(client, {F::kAck | F::kPsh, kTheirs + 1, kIsn + 2})) {
                    client.is_served = true;
                    then(200, Step::Fin);
                }
                return;
            case Step::Fin:
                if (forward(client, {F::kFin | F::kAck, kIsn + 2, kTheirs + 2})) {
                    then(1, Step::LastFin);
                }
                return;
            case Step::LastFin:
                reverse(client, {F::kFin | F::kAck, kTheirs + 2, kIsn + 3});
                return;
        }
    }

    Time& time_;
    std::vector<Client> clients_;
    Agenda<Due> agenda_;
    Frame up_{eth()
                  .from_mac(kClientMac.to_string())
                  .to_mac(kUpMac.to_string())
                  .ipv4("198.18.0.1", "80.11.12.10")
                  .tcp(1, 80, "S")
                  .build()};
    Frame down_{eth()
                    .from_mac(backend_mac(11).to_string())
                    .to_mac(kClusterMac.to_string())
                    .ipv4("10.80.2.11", "10.80.2.1")
                    .tcp(1, 80, "S")
                    .build()};
};

TEST(SynFlood, LeavesHonestClientsOfEveryServiceServed_NAT002) {
    VirtualGateway gateway(shared_with_host());
    const auto service = [](const char* name, L4Port port, uint8_t backend) {
        return TestService{.name = name, .frontends = {{kVip, port}}, .backends = {backend}};
    };
    gateway.publish(
        {service("flooded", 80, 11), service("same-endpoint", 81, 11), service("other-endpoint", 82, 12)});
    Time time(gateway);
    Clients clients(time);
    const Clients::Service services[] = {{80, 11, 198U << 24 | 18U << 16},
                                         {81, 11, 198U << 24 | 18U << 16 | 1U << 8},
                                         {82, 12, 198U << 24 | 18U << 16 | 2U << 8}};
    Frame syn(eth()
                  .from_mac(kClientMac.to_string())
                  .to_mac(kUpMac.to_string())
                  .ipv4("203.0.113.1", "80.11.12.10")
                  .tcp(1, 80, "S")
                  .build());
    Frame syn_ack(eth()
                      .from_mac(backend_mac(11).to_string())
                      .to_mac(kClusterMac.to_string())
                      .ipv4("10.80.2.11", "10.80.2.1")
                      .tcp(1, 80, "SA")
                      .build());
    Agenda<Socket> answers;
    uint64_t forged = 0;
    for (uint64_t ms = 0; ms < 65'000; ++ms) {
        time.pass();
        for (const Socket& to : answers.due(time.now_ms())) {
            syn_ack.set_sockets({kBackendBits + 11, kBackendPort}, to);
            time.send(syn_ack, kCluster);
        }
        clients.work();
        if (ms < 60'000) {
            for (; forged < ms * 6; ++forged) {
                syn.set_sockets({(11U << 24) + static_cast<uint32_t>(forged),
                                 static_cast<L4Port>(1'024 + forged % 50'000)},
                                {kVipBits, 80});
                if (const auto left = time.send(syn, kUp); left && forged % 2 == 0) {
                    answers.add(time.now_ms() + 1,
                                left->source);  // for the other half the endpoint's queue is full
                }
            }
            if (ms % 50 == 0) {
                for (const Clients::Service& each : services) {
                    clients.begin(each);
                }
            }
        }
    }
    EXPECT_GT(forged, 350'000u);
    for (const Clients::Service& each : services) {
        EXPECT_EQ(clients.begun(each), 1'200u);
        EXPECT_GE(clients.served(each) * 100, clients.begun(each) * 99) << "port " << each.port;
    }
}

}  // namespace snat_ports_test
}  // namespace penstock::test
