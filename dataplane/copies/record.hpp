// SPDX-License-Identifier: Apache-2.0
// The records by which a gateway copies its connections to the heir of their share (docs/adr/0050). A batch
// is any number of records, one behind the other. All integers are little-endian, at any alignment. Addresses
// are in network order.
//
//   offset  bytes    field
//        0  1        kind: 1 Ended, 2 Held with IPv4 addresses, 3 Held with addresses of 16 bytes
//        1  4        slot                                                              (Ended ends here)
//        5  1        protocol, as in the IP header
//        6  1        state: a TcpState, DatagramState or SctpState, by protocol
//        7  1        flags: 1: the source is kept. Others are 0
//        8  4        age: since the connection opened      (both in units of 10 ms, at most 497 days)
//       12  4        idle: since a packet last renewed it
//       16  2 x 4    tags, by Direction (conn::Connection::tags)
//       24  2 x 2    ports of the forward key: source, destination
//       28  2 x 2    ports of the reverse key
//       32  4 x 4    kind 2: source and destination of the forward key, then of the reverse key
//           4 x 16   kind 3: the same. One key at least is of IPv6; an IPv4 address is in mapped form
//
// Times travel as ages, because the clocks of two gateways have neither an origin nor a rate in common: a
// unit of CoarseTime has another length on another processor.
//
// A change to this layout, or to the number of a state, needs another format of the stream that carries the
// batches. A kind that is not known is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/connection.hpp"

namespace penstock::copies {

struct Record {
    enum class Kind : uint8_t {
        Held,   // the sender has this connection in the slot
        Ended,  // the slot has none that concerns the receiver
    };
    Kind kind = Kind::Ended;
    // The connection's place at the sender. A Held record replaces what the slot had before. Records are in
    // the order in which the sender has read its tables, so a Held record also replaces a connection of
    // another slot that has one of its keys: that connection has ended, and its Ended record follows.
    uint32_t slot = 0;
    // If Held. Its service, backend, is_pinned, snat_pool, snat_index and deltas are unset: they follow from
    // the configuration of the gateway that takes the connection over.
    conn::Connection connection;
};

inline constexpr size_t kHeldV4Bytes = 48;
inline constexpr size_t kHeldV6Bytes = 96;  // also of a connection between families
inline constexpr size_t kEndedBytes = 5;
// decode() refuses a longer batch: it limits the memory that a peer can occupy by one.
inline constexpr size_t kBatchBytesMax = 256 * 1024;

// `now` and `clock` are those of the connection's times. A time of the near future, from the counter of
// another core, is sent as `now`.
void append_held(std::vector<std::byte>& to, uint32_t slot, const conn::Connection& connection,
                 CoarseTime now, const CoarseClock& clock);
void append_ended(std::vector<std::byte>& to, uint32_t slot);

// The number of records that append_held() and append_ended() have written.
[[nodiscard]] uint64_t count_records(std::span<const std::byte> batch) noexcept;

// All records of a batch, with times of the receiver's clock. InvalidArgument if a record is none that a
// gateway sends: the text names its position and the rule. Then no record of the batch is returned. A
// connection that is returned has a known protocol and a state of it, two keys of one family each, addresses
// and ports with which a packet may arrive, and last_seen not before opened_at.
[[nodiscard]] Result<std::vector<Record>> decode(std::span<const std::byte> batch, CoarseTime now,
                                                 const CoarseClock& clock);

}  // namespace penstock::copies
