// SPDX-License-Identifier: Apache-2.0
// The data plane protocol of FRR's bfdd (`bfdd --dplaneaddr`), versions 1 and 2: bfdd requests sessions, and
// the data plane reports their states. Messages on a byte stream, numbers in network byte order:
//
//   header   version (1), zero (1), type (2), id (2; 0: no answer is expected), length of the message (2)
//   session  flags (4), local and peer address (16 each, IPv4 in the first 4), local discriminator, minimum
//            intervals of transmission and reception in us, the same of echo packets, hold time (4 each),
//            least TTL (1), detection multiplier (1), zero (2), interface index (4), interface name (64).
//            Version 2 has more fields behind these, which concern other kinds of sessions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/bfd/session.hpp"

namespace penstock::bfd {

// Adds or changes a session, or removes it.
struct SessionRequest {
    bool removes = false;
    uint32_t discriminator = 0;  // local; names the session
    IpAddr local;                // unspecified: the data plane selects it
    IpAddr peer;
    bool is_multihop = false;
    bool is_passive = false;
    bool is_shut_down = false;
    bool control_plane_independent = false;
    // Neither classical BFD nor without encapsulation (version 2).
    bool is_other_kind = false;
    uint32_t min_tx_us = 0;
    uint32_t min_rx_us = 0;
    uint8_t ttl_min = 0;
    uint8_t detect_multiplier = 0;
    std::string interface;  // "": any
    bool operator==(const SessionRequest&) const = default;
};

struct EchoRequest {
    std::array<uint8_t, 8> sent_at{};  // returned as it is
    bool operator==(const EchoRequest&) const = default;
};

struct CountersRequest {
    uint16_t id = 0;
    uint32_t discriminator = 0;
    bool operator==(const CountersRequest&) const = default;
};

using FrrMessage = std::variant<SessionRequest, EchoRequest, CountersRequest>;

// Splits a stream into messages.
class FrrReader {
 public:
    explicit FrrReader(uint8_t version = 1) : version_(version) {}
    void append(ByteView bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    // The next message; empty: it is not complete yet. Messages without a meaning for a data plane are
    // skipped. InvalidArgument: the stream cannot be continued.
    Result<std::optional<FrrMessage>> next();
    // Of the last message, for answers. Before it, the one of the constructor.
    [[nodiscard]] uint8_t version() const noexcept { return version_; }
    // No part of a message is left.
    [[nodiscard]] bool is_empty() const noexcept { return bytes_.empty(); }

 private:
    std::vector<uint8_t> bytes_;
    uint8_t version_;
};

// Messages to bfdd.
[[nodiscard]] std::vector<uint8_t> state_change(uint8_t version, uint32_t discriminator,
                                                const Status& status);
[[nodiscard]] std::vector<uint8_t> echo_reply(uint8_t version, const EchoRequest& request, uint64_t now_us);
// Of control packets. Empty counters for a session that does not exist.
struct PacketCounts {
    uint64_t received_bytes = 0;
    uint64_t received = 0;
    uint64_t sent_bytes = 0;
    uint64_t sent = 0;
};
[[nodiscard]] std::vector<uint8_t> counters(uint8_t version, const CountersRequest& request,
                                            const PacketCounts& counts);

}  // namespace penstock::bfd
