// SPDX-License-Identifier: Apache-2.0
// Clients and backends of a steering bed, many at a time: full-NAT connections are opened, answered and
// confirmed, and each frame that comes out is checked against its expected content. A frame carries its
// connection's number (TCP: the sequence number; UDP: the payload), which NAT leaves unchanged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/protocol.hpp"
#include "tests/steering/bed.hpp"

namespace penstock::test {

struct TrafficKind {
    IpFamily family = IpFamily::V4;
    Protocol protocol = Protocol::Tcp;
};
inline constexpr std::array<TrafficKind, 4> kTrafficKinds = {{{IpFamily::V4, Protocol::Tcp},
                                                              {IpFamily::V4, Protocol::Udp},
                                                              {IpFamily::V6, Protocol::Tcp},
                                                              {IpFamily::V6, Protocol::Udp}}};
[[nodiscard]] std::string to_string(const TrafficKind& kind);  // "tcp4"

inline constexpr L4Port kServicePort = 80;
inline const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
inline constexpr IpAddr kVip6 = v6_on_link(9, 9);
// Served on both families, by 10.80.2.11 to .14 and the corresponding IPv6 addresses.
[[nodiscard]] std::vector<TestService> steering_services();

// Frames of one kind, written into a template: PacketBuilder is too slow for a hundred thousand frames.
class FrameWriter {
 public:
    explicit FrameWriter(const TrafficKind& kind);
    // From client `number`, which has its own address and port.
    [[nodiscard]] const std::vector<uint8_t>& from_client(uint32_t number, bool opens);
    // The backend's answer to a frame that reached it.
    [[nodiscard]] const std::vector<uint8_t>& answer_to(const std::vector<uint8_t>& frame);
    [[nodiscard]] static IpAddr client_address(IpFamily family, uint32_t number);
    [[nodiscard]] static L4Port client_port(uint32_t number);

 private:
    void finish(std::vector<uint8_t>& frame) const;
    TrafficKind kind_;
    std::vector<uint8_t> template_, answer_;
};

struct TrafficResult {
    // Connections whose first frame reached a backend, its answer the client, and the next frame the same
    // backend.
    uint32_t opened = 0;
    std::string first_fault;  // empty: no fault
};
// Opens `count` connections of one kind, numbered from `first`, in batches. Ends at the first batch with a
// fault.
[[nodiscard]] TrafficResult open_connections(SteeringBed& bed, const TrafficKind& kind, uint32_t first,
                                             uint32_t count);

}  // namespace penstock::test
