// SPDX-License-Identifier: Apache-2.0
#include "control/pcapng/pcapng.hpp"

#include <cstring>
#include <type_traits>

namespace penstock::capture {
namespace {

// Block types and option codes of the draft.
constexpr uint32_t kSectionHeader = 0x0a0d0d0a, kInterface = 1, kStatistics = 5, kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr uint16_t kComment = 1, kApplication = 4;                     // any block; section header
constexpr uint16_t kName = 2, kDescription = 3, kTimeResolution = 9;   // interface
constexpr uint16_t kFlags = 2, kLostBefore = 4;                        // packet
constexpr uint16_t kStart = 2, kEnd = 3, kReceived = 4, kDropped = 5;  // statistics
constexpr uint16_t kEthernet = 1;                                      // link type
constexpr uint8_t kNanoseconds = 9;                                    // a power of ten
constexpr size_t kOptionMax = 0xffff;

// A block that is being written at the end of `out`; complete when it is destroyed.
class Block {
 public:
    Block(std::string& out, uint32_t type) : out_(out), begin_(out.size()) {
        put(type);
        put(uint32_t{0});  // its length, see the destructor
    }
    ~Block() {
        if (has_options_) {
            put(uint16_t{0});  // opt_endofopt
            put(uint16_t{0});
        }
        const auto length = static_cast<uint32_t>(out_.size() - begin_ + sizeof(uint32_t));
        put(length);
        std::memcpy(out_.data() + begin_ + sizeof(uint32_t), &length, sizeof length);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    template <typename Number>
    void put(Number number) {
        static_assert(std::is_integral_v<Number>);
        char raw[sizeof number];
        std::memcpy(raw, &number, sizeof number);
        out_.append(raw, sizeof number);
    }
    void put_padded(const void* bytes, size_t count) {
        out_.append(static_cast<const char*>(bytes), count);
        out_.append((4 - count % 4) % 4, '\0');
    }
    // High word first, as in packets and statistics.
    void put_time(uint64_t time) {
        put(static_cast<uint32_t>(time >> 32));
        put(static_cast<uint32_t>(time));
    }
    void text(uint16_t code, std::string_view text) {
        if (!text.empty()) {
            const size_t count = text.size() > kOptionMax ? kOptionMax : text.size();
            option(code, count);
            put_padded(text.data(), count);
        }
    }
    template <typename Number>
    void number(uint16_t code, Number number) {
        option(code, sizeof number);
        put_padded(&number, sizeof number);
    }
    void time(uint16_t code, uint64_t time) {
        option(code, sizeof time);
        put_time(time);
    }

 private:
    void option(uint16_t code, size_t length) {
        put(code);
        put(static_cast<uint16_t>(length));
        has_options_ = true;
    }
    std::string& out_;
    const size_t begin_;
    bool has_options_ = false;
};

}  // namespace

Pcapng::Pcapng(std::string_view program) {
    Block block(bytes_, kSectionHeader);
    block.put(kByteOrderMagic);
    block.put(uint16_t{1});  // version 1.0
    block.put(uint16_t{0});
    block.put(~uint64_t{0});  // length of the section: not known
    block.text(kApplication, program);
}

uint32_t Pcapng::add_interface(std::string_view name, std::string_view description, uint32_t snap_bytes) {
    Block block(bytes_, kInterface);
    block.put(kEthernet);
    block.put(uint16_t{0});
    block.put(snap_bytes);
    block.text(kName, name);
    block.text(kDescription, description);
    block.number(kTimeResolution, kNanoseconds);
    return interfaces_++;
}

void Pcapng::add_packet(const Packet& packet) {
    Block block(bytes_, kEnhancedPacket);
    block.put(packet.interface);
    block.put_time(packet.time_ns);
    block.put(static_cast<uint32_t>(packet.bytes.size()));
    block.put(packet.wire_bytes);
    block.put_padded(packet.bytes.data(), packet.bytes.size());
    block.text(kComment, packet.comment);
    if (packet.direction != Direction::Unknown) {
        block.number(kFlags, static_cast<uint32_t>(packet.direction));
    }
    if (packet.lost_before > 0) {
        block.number(kLostBefore, packet.lost_before);
    }
}

void Pcapng::add_statistics(const Statistics& statistics) {
    Block block(bytes_, kStatistics);
    block.put(statistics.interface);
    block.put_time(statistics.end_ns);
    block.text(kComment, statistics.comment);
    block.time(kStart, statistics.start_ns);
    block.time(kEnd, statistics.end_ns);
    block.number(kReceived, statistics.received);
    block.number(kDropped, statistics.lost);
}

}  // namespace penstock::capture
