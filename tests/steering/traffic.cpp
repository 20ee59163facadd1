// SPDX-License-Identifier: Apache-2.0
#include "tests/steering/traffic.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_set>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::test {
namespace {

// Fits in the rings of one queue, so no frame waits for room even if all frames use one queue.
constexpr uint32_t kBatch = 1000;
constexpr size_t kEthernet = 14;
// How a client's number is encoded in its port and its address.
constexpr uint32_t kPortsPerClient = 50'000;
constexpr L4Port kFirstClientPort = 10'000;

struct Offsets {
    size_t source, destination, l4, number;
    size_t address_bytes;
};
Offsets offsets_of(const TrafficKind& kind) {
    const bool is_v4 = kind.family == IpFamily::V4;
    const size_t l4 = kEthernet + (is_v4 ? 20 : 40);
    return {.source = kEthernet + (is_v4 ? 12u : 8u),
            .destination = kEthernet + (is_v4 ? 16u : 24u),
            .l4 = l4,
            .number = l4 + (kind.protocol == Protocol::Tcp ? 4 : 8),
            .address_bytes = is_v4 ? 4u : 16u};
}

void put16(std::vector<uint8_t>& frame, size_t at, uint32_t value) {
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
}
void put32(std::vector<uint8_t>& frame, size_t at, uint32_t value) {
    put16(frame, at, value >> 16);
    put16(frame, at + 2, value);
}
uint32_t get32(const std::vector<uint8_t>& frame, size_t at) {
    return uint32_t{frame[at]} << 24 | uint32_t{frame[at + 1]} << 16 | uint32_t{frame[at + 2]} << 8 |
           frame[at + 3];
}
void put_address(std::vector<uint8_t>& frame, size_t at, const IpAddr& address) {
    const auto bytes = address.bytes();
    const size_t size = address.is_v4() ? 4 : 16;
    std::copy(bytes.end() - static_cast<std::ptrdiff_t>(size), bytes.end(),
              frame.begin() + static_cast<std::ptrdiff_t>(at));
}

const IpAddr& vip_of(IpFamily family) {
    return family == IpFamily::V4 ? kVip : kVip6;
}

// Reads the frame's key. Returns the reason if the frame is not correct.
std::string read(const std::vector<uint8_t>& frame, const TrafficKind& kind, packet::FlowKey& key) {
    packet::Parsed parsed;
    if (const auto result = packet::parse(frame, parsed); !result.has_value()) {
        return "unreadable: " + to_scapy(frame);
    }
    key = parsed.key;
    const Offsets at = offsets_of(kind);
    const size_t field = at.l4 + (kind.protocol == Protocol::Tcp ? 16 : 6);
    const uint16_t sum = static_cast<uint16_t>(frame[field] << 8 | frame[field + 1]);
    if (sum != reference_l4_checksum(frame)) {
        return "wrong checksum: " + to_scapy(frame);
    }
    return {};
}

}  // namespace

std::string to_string(const TrafficKind& kind) {
    return std::string(kind.protocol == Protocol::Tcp ? "tcp" : "udp") +
           (kind.family == IpFamily::V4 ? "4" : "6");
}

std::vector<TestService> steering_services() {
    std::vector<TestService> services;
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
        services.push_back({.name = "web",
                            .protocol = protocol,
                            .frontends = {{kVip, kServicePort}, {kVip6, kServicePort}},
                            .backends = {11, 12, 13, 14}});
    }
    return services;
}

FrameWriter::FrameWriter(const TrafficKind& kind) : kind_(kind) {
    PacketBuilder built = eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
    const IpAddr client = client_address(kind.family, 0);
    if (kind.family == IpFamily::V4) {
        built.ipv4(client.to_string(), vip_of(kind.family).to_string());
    } else {
        built.ipv6(client.to_string(), vip_of(kind.family).to_string());
    }
    if (kind.protocol == Protocol::Tcp) {
        built.tcp(1, kServicePort, "S");
    } else {
        built.udp(1, kServicePort).payload(std::vector<uint8_t>(4));
    }
    template_ = built.build();
}

IpAddr FrameWriter::client_address(IpFamily family, uint32_t number) {
    const auto client = static_cast<uint8_t>(1 + number / kPortsPerClient);
    return family == IpFamily::V4 ? IpAddr::v4(198, 51, 100, client) : v6_on_link(7, client);
}
L4Port FrameWriter::client_port(uint32_t number) {
    return static_cast<L4Port>(kFirstClientPort + number % kPortsPerClient);
}

void FrameWriter::finish(std::vector<uint8_t>& frame) const {
    if (kind_.family == IpFamily::V4) {
        put16(frame, kEthernet + 10, 0);
        put16(frame, kEthernet + 10, reference_checksum(ByteView(frame).subspan(kEthernet, 20)));
    }
    put16(frame, offsets_of(kind_).l4 + (kind_.protocol == Protocol::Tcp ? 16u : 6u),
          reference_l4_checksum(frame));
}

const std::vector<uint8_t>& FrameWriter::from_client(uint32_t number, bool opens) {
    const Offsets at = offsets_of(kind_);
    put_address(template_, at.source, client_address(kind_.family, number));
    put16(template_, at.l4, client_port(number));
    put32(template_, at.number, number);
    if (kind_.protocol == Protocol::Tcp) {
        template_[at.l4 + 13] = opens ? 0x02 : 0x10;  // SYN, ACK
    }
    finish(template_);
    return template_;
}

const std::vector<uint8_t>& FrameWriter::answer_to(const std::vector<uint8_t>& frame) {
    const Offsets at = offsets_of(kind_);
    answer_ = frame;
    std::swap_ranges(answer_.begin(), answer_.begin() + 6, answer_.begin() + 6);
    std::swap_ranges(answer_.begin() + static_cast<std::ptrdiff_t>(at.source),
                     answer_.begin() + static_cast<std::ptrdiff_t>(at.source + at.address_bytes),
                     answer_.begin() + static_cast<std::ptrdiff_t>(at.destination));
    std::swap_ranges(answer_.begin() + static_cast<std::ptrdiff_t>(at.l4),
                     answer_.begin() + static_cast<std::ptrdiff_t>(at.l4 + 2),
                     answer_.begin() + static_cast<std::ptrdiff_t>(at.l4 + 2));
    if (kind_.protocol == Protocol::Tcp) {
        answer_[at.l4 + 13] = 0x12;  // SYN and ACK
    }
    finish(answer_);
    return answer_;
}

TrafficResult open_connections(SteeringBed& bed, const TrafficKind& kind, uint32_t first, uint32_t count) {
    TrafficResult result;
    const auto fault = [&](const std::string& what) {
        if (result.first_fault.empty()) {
            result.first_fault = to_string(kind) + ": " + what;
        }
    };
    FrameWriter writer(kind);
    const Offsets at = offsets_of(kind);
    const IpAddr& snat = kind.family == IpFamily::V4 ? kClusterAddress : kClusterAddress6;
    // (backend, SNAT port) pairs in use: no two connections may share one.
    std::unordered_set<uint64_t> inside;
    std::vector<packet::FlowKey> key_of(kBatch);
    std::vector<std::vector<uint8_t>> at_backend(kBatch);

    for (uint32_t done = 0; done < count && result.first_fault.empty();) {
        const uint32_t batch = std::min(kBatch, count - done);
        const uint32_t base = first + done;
        // Sends the batch's frames from `frame_of`, and takes as many on the other side. `seen` gets each
        // with the index of its connection.
        const auto pass =
            [&](NicPortId in, NicPortId out, const char* what,
                const std::function<const std::vector<uint8_t>&(uint32_t)>& frame_of,
                const std::function<void(uint32_t, std::vector<uint8_t>&, const packet::FlowKey&)>& seen) {
                for (uint32_t i = 0; i < batch; ++i) {
                    if (const Received received = bed.wire(in).put(frame_of(i));
                        received.fate != Received::Fate::Queued) {
                        return fault(std::string(what) + " was not received, fate " +
                                     std::to_string(static_cast<int>(received.fate)));
                    }
                }
                std::vector<bool> came(batch);
                for (uint32_t i = 0; i < batch; ++i) {
                    std::vector<uint8_t> frame = bed.wire(out).take();
                    if (frame.empty()) {
                        return fault(std::to_string(batch - i) + " of " + std::to_string(batch) +
                                     " frames are missing: " + what);
                    }
                    packet::FlowKey key;
                    if (const std::string why = read(frame, kind, key); !why.empty()) {
                        return fault(std::string(what) + ": " + why);
                    }
                    const uint32_t number = get32(frame, at.number) - base;
                    if (number >= batch || came[number]) {
                        return fault(std::string(what) +
                                     ": twice, or from another batch: " + to_scapy(frame));
                    }
                    came[number] = true;
                    seen(number, frame, key);
                }
            };
        pass(
            kUp, kCluster, "the first frame",
            [&](uint32_t i) -> const std::vector<uint8_t>& { return writer.from_client(base + i, true); },
            [&](uint32_t i, std::vector<uint8_t>& frame, const packet::FlowKey& key) {
                if (key.source != snat || key.destination_port != TestService{}.backend_port) {
                    fault("the first frame reached nobody's backend: " + key.to_string());
                }
                const uint64_t host = key.destination.bytes()[15];
                if (!inside.insert(host << 16 | key.source_port).second) {
                    fault("two connections have the SNAT port of " + key.to_string());
                }
                key_of[i] = key;
                at_backend[i] = std::move(frame);
            });
        if (result.first_fault.empty()) {
            pass(
                kCluster, kUp, "the answer",
                [&](uint32_t i) -> const std::vector<uint8_t>& { return writer.answer_to(at_backend[i]); },
                [&](uint32_t i, std::vector<uint8_t>&, const packet::FlowKey& key) {
                    const packet::FlowKey wanted{
                        vip_of(kind.family), FrameWriter::client_address(kind.family, base + i),
                        kServicePort,        FrameWriter::client_port(base + i),
                        kind.protocol,       {}};
                    if (key != wanted) {
                        fault("the answer left as " + key.to_string() + ", not " + wanted.to_string());
                    }
                });
        }
        if (result.first_fault.empty()) {
            pass(
                kUp, kCluster, "the next frame",
                [&](uint32_t i) -> const std::vector<uint8_t>& {
                    return writer.from_client(base + i, false);
                },
                [&](uint32_t i, std::vector<uint8_t>&, const packet::FlowKey& key) {
                    if (key != key_of[i]) {
                        fault("the next frame left as " + key.to_string() + ", not " + key_of[i].to_string());
                    }
                });
        }
        if (result.first_fault.empty()) {
            result.opened += batch;
        }
        done += batch;
    }
    return result;
}

}  // namespace penstock::test
