// Clients and backends of a steering bed, many at a time: full-NAT connections opened, answered and confirmed, each frame that comes out
// held against what it must be. A frame carries its connection's number (TCP: the sequence number; UDP: the payload), which NAT leaves
// alone.
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
// Served on both families, by 10.80.2.11 to .14 and their IPv6 likes.
[[nodiscard]] std::vector<TestService> steering_services();

// Frames of one kind, written into a template: PacketBuilder is too slow for a hundred thousand.
class FrameWriter {
 public:
    explicit FrameWriter(const TrafficKind& kind);
    // From client `number`, whose address and port are its own.
    [[nodiscard]] const std::vector<uint8_t>& from_client(uint32_t number, bool opens);
    // What the backend says to a frame that reached it.
    [[nodiscard]] const std::vector<uint8_t>& answer_to(const std::vector<uint8_t>& frame);
    [[nodiscard]] static IpAddr client_address(IpFamily family, uint32_t number);
    [[nodiscard]] static L4Port client_port(uint32_t number);

 private:
    void finish(std::vector<uint8_t>& frame) const;
    TrafficKind kind_;
    std::vector<uint8_t> template_, answer_;
};

struct TrafficResult {
    uint32_t opened =
        0;  // connections whose first frame reached a backend, its answer the client, and the next frame the same backend
    std::string first_fault;  // empty: everything was as it must be
};
// Opens `count` connections of one kind, numbered from `first`, in batches. Ends at the first batch in which something is wrong.
[[nodiscard]] TrafficResult open_connections(SteeringBed& bed, const TrafficKind& kind, uint32_t first,
                                             uint32_t count);

}  // namespace penstock::test
