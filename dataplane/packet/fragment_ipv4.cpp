// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/fragment_ipv4.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr uint8_t kEndOfOptions = 0, kNoOperation = 1;
constexpr uint8_t kCopied = 0x80;  // copied into every fragment (RFC 791, 3.1)

// Copies the options that every fragment must have. Options are for the hosts and routers on the path; bytes
// that do not parse as a list of options stay in the first fragment only.
uint16_t copy_options(ByteView options, uint8_t* to) noexcept {
    uint16_t copied = 0;
    for (size_t at = 0; at < options.size() && options[at] != kEndOfOptions;) {
        if (options[at] == kNoOperation) {
            ++at;
            continue;
        }
        if (at + 1 == options.size() || options[at + 1] < 2 || options[at + 1] > options.size() - at) {
            break;
        }
        const uint8_t bytes = options[at + 1];
        if ((options[at] & kCopied) != 0) {
            std::memcpy(to + copied, options.data() + at, bytes);
            copied = static_cast<uint16_t>(copied + bytes);
        }
        at += bytes;
    }
    const auto padded = static_cast<uint16_t>((copied + 3) & ~3);
    std::memset(to + copied, kEndOfOptions, static_cast<size_t>(padded - copied));
    return padded;
}

constexpr uint16_t whole_units(uint16_t bytes) noexcept {
    return static_cast<uint16_t>(bytes - bytes % kFragmentUnitBytes);
}

}  // namespace

std::optional<Ipv4Fragments> Ipv4Fragments::of(ByteView packet, uint16_t mtu) noexcept {
    PENSTOCK_ASSERT(packet.size() >= sizeof(Ipv4Header));
    auto header = load<Ipv4Header>(packet.data());
    const uint16_t header_bytes = header.header_bytes();
    PENSTOCK_ASSERT(header_bytes >= sizeof(Ipv4Header) && header.total_length.host() >= header_bytes &&
                    packet.size() >= header.total_length.host());
    if ((header.flags_and_offset.host() & Ipv4Header::kDontFragment) != 0 ||
        mtu < header_bytes + kFragmentUnitBytes) {
        return std::nullopt;
    }
    const uint32_t begins_at =
        (header.flags_and_offset.host() & Ipv4Header::kOffsetMask) * uint32_t{kFragmentUnitBytes};
    // Ends beyond the longest datagram: the offsets of its pieces would wrap around to 0.
    if (begins_at + header.total_length.host() - header_bytes > UINT16_MAX) {
        return std::nullopt;
    }
    Ipv4Fragments made;
    std::memcpy(made.first_header_.data(), packet.data(), header_bytes);
    made.first_header_bytes_ = header_bytes;
    made.payload_ = static_cast<uint16_t>(header.total_length.host() - header_bytes);
    made.first_payload_ = whole_units(static_cast<uint16_t>(mtu - header_bytes));
    made.later_header_bytes_ = static_cast<uint16_t>(
        sizeof header + copy_options(packet.subspan(sizeof header, header_bytes - sizeof header),
                                     made.later_header_.data() + sizeof header));
    made.later_payload_ = whole_units(static_cast<uint16_t>(mtu - made.later_header_bytes_));
    header.version_and_words = static_cast<uint8_t>(0x40 | made.later_header_bytes_ / 4);
    store(made.later_header_.data(), header);
    const uint32_t behind_first =
        made.payload_ > made.first_payload_ ? made.payload_ - uint32_t{made.first_payload_} : 0;
    made.count_ = 1 + (behind_first + made.later_payload_ - 1) / made.later_payload_;
    if (made.count_ > kFragmentsMax) {
        return std::nullopt;
    }
    return made;
}

Ipv4Fragment Ipv4Fragments::at(uint32_t number) const noexcept {
    PENSTOCK_ASSERT(number < count_);
    const bool is_first = number == 0;
    const auto payload_offset =
        static_cast<uint16_t>(is_first ? 0 : first_payload_ + (number - 1) * later_payload_);
    Ipv4Fragment fragment;
    fragment.header = is_first ? first_header_ : later_header_;
    fragment.header_bytes = is_first ? first_header_bytes_ : later_header_bytes_;
    fragment.payload_at = static_cast<uint16_t>(first_header_bytes_ + payload_offset);
    fragment.payload_bytes = static_cast<uint16_t>(
        std::min<uint32_t>(is_first ? first_payload_ : later_payload_, payload_ - payload_offset));

    auto header = load<Ipv4Header>(fragment.header.data());
    const uint16_t sent = header.flags_and_offset.host();
    const bool is_last = number + 1 == count_;
    const uint32_t offset = (sent & Ipv4Header::kOffsetMask) + payload_offset / uint32_t{kFragmentUnitBytes};
    const uint32_t more = is_last ? sent & Ipv4Header::kMoreFragments : Ipv4Header::kMoreFragments;
    header.flags_and_offset = Be16::from_host(static_cast<uint16_t>(offset | more));
    header.total_length = Be16::from_host(fragment.bytes());
    header.checksum = {};
    store(fragment.header.data(), header);
    header.checksum = ChecksumSum().add(ByteView(fragment.header).first(fragment.header_bytes)).checksum();
    store(fragment.header.data(), header);
    return fragment;
}

}  // namespace penstock::packet
