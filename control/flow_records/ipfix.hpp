// SPDX-License-Identifier: Apache-2.0
// Flow records as IPFIX messages (RFC 7011) with the information elements of NAT logging (RFC 8158) and of
// bidirectional flows (RFC 5103). Pure: bytes out, no socket, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/flow_records/event.hpp"

namespace penstock::flow_records {

using Message = std::vector<uint8_t>;

class IpfixEncoder {
 public:
    // Every message of templates and every record fits into this number of bytes.
    static constexpr size_t kMessageBytesMin = 1'024;

    // `domain`: observation domain. `message_bytes_max`: at least kMessageBytesMin.
    IpfixEncoder(uint32_t domain, size_t message_bytes_max);

    // All templates. A collector needs them before records; over UDP they are repeated (RFC 7011, 8.4).
    [[nodiscard]] Message templates(uint32_t now_s) const;
    // Adds a record to the message that is being filled. If it has no room, returns that message, and the
    // record begins the next one.
    [[nodiscard]] std::optional<Message> add(const Event& event, const Origin& origin, uint32_t now_s);
    // The message that is being filled; empty: it has no record.
    [[nodiscard]] std::optional<Message> finish(uint32_t now_s);
    // Records in the message that is being filled.
    [[nodiscard]] uint32_t records() const noexcept { return records_; }

 private:
    void begin_set(uint16_t template_id);

    const uint32_t domain_;
    const size_t message_bytes_max_;
    Message message_;
    uint32_t records_ = 0;  // in `message_`
    size_t set_begin_ = 0;  // of the last set in `message_`
    uint16_t set_id_ = 0;
    uint32_t sequence_ = 0;  // data records in all earlier messages, modulo 2^32
};

}  // namespace penstock::flow_records
