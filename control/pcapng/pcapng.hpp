// SPDX-License-Identifier: Apache-2.0
// A pcapng file (draft-ietf-opsawg-pcapng) in parts: a section header, interfaces, packets with comments, and
// statistics. Byte order is that of the machine, as the format allows. Times are nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::capture {

enum class Direction : uint8_t { Unknown = 0, Inbound = 1, Outbound = 2 };  // bits of epb_flags

class Pcapng {
 public:
    // Begins with the section header. `program`: name and version.
    explicit Pcapng(std::string_view program);

    // Ethernet. Returns its number.
    uint32_t add_interface(std::string_view name, std::string_view description, uint32_t snap_bytes);
    struct Packet {
        uint32_t interface = 0;
        uint64_t time_ns = 0;
        std::span<const uint8_t> bytes;
        uint32_t wire_bytes = 0;
        Direction direction = Direction::Unknown;
        uint64_t lost_before = 0;
        std::string_view comment;
    };
    void add_packet(const Packet& packet);
    struct Statistics {
        uint32_t interface = 0;
        uint64_t start_ns = 0, end_ns = 0;
        uint64_t received = 0;
        uint64_t lost = 0;
        std::string_view comment;
    };
    void add_statistics(const Statistics& statistics);

    [[nodiscard]] size_t size() const noexcept { return bytes_.size(); }
    // The blocks that were added since the last call.
    [[nodiscard]] std::string take() { return std::exchange(bytes_, {}); }

 private:
    uint32_t interfaces_ = 0;
    std::string bytes_;
};

}  // namespace penstock::capture
