// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pipeline/sight.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "tests/support/packet_builder.hpp"

namespace penstock::fuzz {
namespace {

constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragmentHeader = 44, kDestinationOptions = 60;

std::array<uint8_t, 16> bytes16(const Frame& frame, size_t at) {
    std::array<uint8_t, 16> bytes;
    std::copy_n(frame.begin() + static_cast<ptrdiff_t>(at), bytes.size(), bytes.begin());
    return bytes;
}

bool look_at_v4(const Frame& frame, Sight& sight) {
    const size_t l3 = sight.l3;
    if (frame.size() < l3 + 20 || frame[l3] >> 4 != 4) {
        return false;
    }
    const size_t header = size_t{frame[l3] & 0x0fU} * 4;
    sight.l3_bytes = word_at(frame, l3 + 2);
    if (header < 20 || sight.l3_bytes < header || frame.size() < l3 + sight.l3_bytes) {
        return false;
    }
    sight.is_v4 = true;
    sight.l4 = l3 + header;
    sight.protocol = frame[l3 + 9];
    sight.ttl = frame[l3 + 8];
    const uint16_t fragment = word_at(frame, l3 + 6);
    sight.is_fragment = (fragment & 0x3fff) != 0;
    sight.is_later_fragment = (fragment & 0x1fff) != 0;
    sight.has_more = (fragment & 0x2000) != 0;
    sight.fragment_offset = (fragment & 0x1fffU) * 8;
    sight.datagram_id = word_at(frame, l3 + 4);
    sight.ip_sum_right = test::reference_checksum(std::span(frame).subspan(l3, header)) == 0;
    sight.source = IpAddr::v4(frame[l3 + 12], frame[l3 + 13], frame[l3 + 14], frame[l3 + 15]);
    sight.destination = IpAddr::v4(frame[l3 + 16], frame[l3 + 17], frame[l3 + 18], frame[l3 + 19]);
    return true;
}

// Walks as long as headers are complete; the bytes behind them are then of the last header's number.
void walk_extensions(const Frame& frame, Sight& sight) {
    const size_t end = sight.l3 + sight.l3_bytes;
    while (!sight.is_later_fragment && sight.l4 + 8 <= end) {
        const uint8_t number = sight.protocol;
        if (number != kHopByHop && number != kRouting && number != kFragmentHeader &&
            number != kDestinationOptions) {
            return;
        }
        const size_t bytes = number == kFragmentHeader ? 8 : (size_t{frame[sight.l4 + 1]} + 1) * 8;
        if (sight.l4 + bytes > end) {
            return;
        }
        if (number == kFragmentHeader) {
            const uint16_t field = word_at(frame, sight.l4 + 2);
            sight.has_fragment_header = true;
            sight.is_fragment |= (field & 0xfff9) != 0;
            sight.is_later_fragment = (field & 0xfff8) != 0;
            sight.has_more = (field & 1) != 0;
            sight.fragment_offset = field & 0xfff8U;
            sight.datagram_id = uint32_t{word_at(frame, sight.l4 + 4)} << 16 | word_at(frame, sight.l4 + 6);
        }
        sight.protocol = frame[sight.l4];
        sight.l4 += bytes;
    }
}

bool look_at_v6(const Frame& frame, Sight& sight) {
    const size_t l3 = sight.l3;
    if (frame.size() < l3 + 40 || frame[l3] >> 4 != 6) {
        return false;
    }
    sight.l3_bytes = size_t{40} + word_at(frame, l3 + 4);
    if (frame.size() < l3 + sight.l3_bytes) {
        return false;
    }
    sight.l4 = l3 + 40;
    sight.protocol = frame[l3 + 6];
    sight.ttl = frame[l3 + 7];
    sight.ip_sum_right = true;
    sight.source = IpAddr::v6(bytes16(frame, l3 + 8));
    sight.destination = IpAddr::v6(bytes16(frame, l3 + 24));
    walk_extensions(frame, sight);
    return true;
}

// The folded sum of the bytes' words. It adds four words at once: one's-complement sums are independent of
// where carries are added and of the byte order of the words (RFC 1071, 2).
uint32_t ones_complement(const Frame& frame, size_t from, size_t to) {
    uint64_t sum = 0;
    for (; from + 8 <= to; from += 8) {
        uint64_t words = 0;
        std::memcpy(&words, frame.data() + from, sizeof words);
        sum += (words & 0xffff'ffff) + (words >> 32);
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum = std::endian::native == std::endian::little ? std::byteswap(static_cast<uint16_t>(sum)) : sum;
    for (; from + 1 < to; from += 2) {
        sum += word_at(frame, from);
    }
    if (from < to) {
        sum += uint64_t{frame[from]} << 8;
    }
    return static_cast<uint32_t>(sum);
}

// The folded sum over pseudo-header and message; 0xffff if it is correct.
uint16_t folded_sum(const Frame& frame, const Sight& sight, size_t bytes) {
    uint64_t sum = 0;
    const bool has_pseudo_header = sight.protocol != kIcmp;
    if (has_pseudo_header) {
        sum += sight.is_v4 ? ones_complement(frame, sight.l3 + 12, sight.l3 + 20)
                           : ones_complement(frame, sight.l3 + 8, sight.l3 + 40);
        sum += bytes + sight.protocol;
    }
    sum += ones_complement(frame, sight.l4, sight.l4 + bytes);
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<uint16_t>(sum);
}

// Castagnoli's CRC (RFC 9260, appendix A) of each byte value, bit by bit.
constexpr std::array<uint32_t, 256> crc_of_bytes() {
    std::array<uint32_t, 256> crcs{};
    for (uint32_t byte = 0; byte < crcs.size(); ++byte) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
        }
        crcs[byte] = crc;
    }
    return crcs;
}

// In the byte order of the packet: least significant byte first.
uint32_t sctp_crc(const Frame& frame, const Sight& sight) {
    static constexpr std::array<uint32_t, 256> kCrcs = crc_of_bytes();
    uint32_t crc = ~uint32_t{0};
    const size_t own_field = sight.l4 + 8;
    for (size_t at = sight.l4; at < sight.l3 + sight.l3_bytes; ++at) {
        const uint8_t byte = at >= own_field && at < own_field + 4 ? uint8_t{0} : frame[at];
        crc = crc >> 8 ^ kCrcs[(crc ^ byte) & 0xff];
    }
    return ~crc;
}

// 0 if the protocol has no such field.
size_t checksum_field(uint8_t protocol) {
    return protocol == kTcp ? 16 : protocol == kUdp ? 6 : protocol == kIcmp || protocol == kIcmpv6 ? 2 : 0;
}

// Number of bytes that the transport's checksum covers; empty if the message is not whole.
std::optional<size_t> summed_bytes(const Frame& frame, const Sight& sight) {
    if (!sight.is_ip || sight.is_fragment) {
        return std::nullopt;
    }
    const size_t bytes = sight.l4_bytes();
    switch (sight.protocol) {
        case kTcp:
            return bytes >= 20 ? std::optional(bytes) : std::nullopt;
        case kUdp: {
            if (bytes < 8) {
                return std::nullopt;
            }
            const size_t length = word_at(frame, sight.l4 + 4);
            return length >= 8 && length <= bytes ? std::optional(length) : std::nullopt;
        }
        case kIcmp:
        case kIcmpv6:
            return bytes >= 8 && (sight.protocol == kIcmp) == sight.is_v4 ? std::optional(bytes)
                                                                          : std::nullopt;
        case kSctp:
            return bytes >= 12 ? std::optional(bytes) : std::nullopt;
        default:
            return std::nullopt;
    }
}

}  // namespace

uint16_t word_at(const Frame& frame, size_t at) {
    return static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]);
}
void set_word(Frame& frame, size_t at, uint16_t value) {
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
}

bool Sight::has_ports(const Frame& frame) const {
    return is_ip && !is_later_fragment && (protocol == kTcp || protocol == kUdp || protocol == kSctp) &&
           l4_bytes() >= 4 && frame.size() >= l4 + 4;
}

bool has_priorities(const Frame& frame) {
    return frame.size() >= kEtherBytes + 4 &&
           (word_at(frame, 12) == 0x8100 || word_at(frame, 12) == 0x88a8) &&
           (word_at(frame, 14) & 0x0fff) == 0;
}

Frame without_priorities(Frame frame) {
    for (int tag = 0; tag < 2 && has_priorities(frame); ++tag) {
        frame.erase(frame.begin() + 12, frame.begin() + 16);
    }
    return frame;
}

Sight look(const Frame& frame) {
    Sight sight;
    if (frame.size() < kEtherBytes) {
        return sight;
    }
    size_t type_at = 12;
    while (frame.size() >= type_at + 6 &&
           (word_at(frame, type_at) == 0x8100 || word_at(frame, type_at) == 0x88a8)) {
        type_at += 4;
        ++sight.vlan_tags;
    }
    sight.l3 = type_at + 2;
    const uint16_t type = word_at(frame, type_at);
    sight.is_ip = type == 0x0800 ? look_at_v4(frame, sight) : type == 0x86dd && look_at_v6(frame, sight);
    return sight;
}

L4Sum l4_sum(const Frame& frame, const Sight& sight) {
    const std::optional<size_t> bytes = summed_bytes(frame, sight);
    if (!bytes) {
        return L4Sum::Unknown;
    }
    if (sight.protocol == kSctp) {
        const uint32_t crc = sctp_crc(frame, sight);
        for (size_t i = 0; i < 4; ++i) {
            if (frame[sight.l4 + 8 + i] != static_cast<uint8_t>(crc >> (8 * i))) {
                return L4Sum::Wrong;
            }
        }
        return L4Sum::Right;
    }
    if (sight.protocol == kUdp && word_at(frame, sight.l4 + 6) == 0) {
        return L4Sum::None;
    }
    return folded_sum(frame, sight, *bytes) == 0xffff ? L4Sum::Right : L4Sum::Wrong;
}

bool is_icmp_error(const Frame& frame, const Sight& sight) {
    if (!sight.is_ip || sight.is_later_fragment || sight.l4_bytes() < 1) {
        return false;
    }
    const uint8_t type = frame[sight.l4];
    if (sight.is_v4) {
        return sight.protocol == kIcmp && (type == 3 || type == 4 || type == 5 || type == 11 || type == 12);
    }
    return sight.protocol == kIcmpv6 && type < 128;
}

Frame quoted_by(const Frame& frame, const Sight& sight) {
    if (!is_icmp_error(frame, sight) || sight.l4_bytes() < 9) {
        return {};
    }
    Frame quoted(kEtherBytes, 0);
    set_word(quoted, 12, sight.is_v4 ? 0x0800 : 0x86dd);
    quoted.insert(quoted.end(), frame.begin() + static_cast<ptrdiff_t>(sight.l4 + 8),
                  frame.begin() + static_cast<ptrdiff_t>(sight.l3 + sight.l3_bytes));
    return quoted;
}

void set_right_sums(Frame& frame) {
    const Sight sight = look(frame);
    if (!sight.is_ip) {
        return;
    }
    if (sight.is_v4) {
        set_word(frame, sight.l3 + 10, 0);
        set_word(frame, sight.l3 + 10,
                 test::reference_checksum(std::span(frame).subspan(sight.l3, sight.l4 - sight.l3)));
    }
    const std::optional<size_t> bytes = summed_bytes(frame, sight);
    if (!bytes) {
        return;
    }
    if (sight.protocol == kSctp) {
        const uint32_t crc = sctp_crc(frame, sight);
        for (size_t i = 0; i < 4; ++i) {
            frame[sight.l4 + 8 + i] = static_cast<uint8_t>(crc >> (8 * i));
        }
        return;
    }
    const size_t at = sight.l4 + checksum_field(sight.protocol);
    set_word(frame, at, 0);
    const auto sum = static_cast<uint16_t>(~folded_sum(frame, sight, *bytes));
    set_word(frame, at, sight.protocol == kUdp && sum == 0 ? 0xffff : sum);
}

}  // namespace penstock::fuzz
