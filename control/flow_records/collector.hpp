// SPDX-License-Identifier: Apache-2.0
// The IPFIX collector: a connected UDP socket that never blocks. Messages may be lost, as those of UDP
// always may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "control/base/descriptor.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/socket_address.hpp"

namespace penstock::flow_records {

class Collector {
 public:
    // Unavailable: there is no route to the collector.
    static Result<Collector> connect(const SocketAddress& address);

    struct Outcome {
        bool is_sent = false;      // false: the socket's buffer is full, or there is no route
        bool was_refused = false;  // the collector's host, or a router, has refused an earlier message
    };
    [[nodiscard]] Outcome send(std::span<const uint8_t> message);
    // Bytes of a message that the path carries without fragments, as far as Linux has its MTU.
    [[nodiscard]] size_t message_bytes_max() const;

 private:
    Collector(Descriptor socket, bool is_v6) : socket_(std::move(socket)), is_v6_(is_v6) {}
    Descriptor socket_;
    bool is_v6_;
};

}  // namespace penstock::flow_records
