// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/ip.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>

#include "dataplane/base/text.hpp"

namespace penstock {
namespace {

std::unexpected<Error> bad_address(std::string_view text, const char* rule) {
    // The text can come from an attacker; 64 bytes are enough to identify it.
    return fail(Errc::InvalidArgument,
                "\"" + std::string(text.substr(0, 64)) + "\" is not an IP address: " + rule);
}

// GEN-005 requires leading zeros to be read as decimal. inet_pton rejects them, so the dotted quad is parsed
// here.
Result<IpAddr> parse_v4(std::string_view text) {
    std::array<uint8_t, 4> quad{};
    std::string_view rest = text;
    for (size_t i = 0; i < quad.size(); ++i) {
        const size_t dot = rest.find('.');
        const std::string_view part = rest.substr(0, dot);
        if ((dot == std::string_view::npos) != (i == 3)) {
            return bad_address(text, "a dotted quad has four parts");
        }
        const auto value = whole_number<uint8_t>(part);
        if (!value || part.size() > 8) {
            return bad_address(text, "each part of a dotted quad is a number from 0 to 255");
        }
        quad[i] = *value;
        rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
    }
    return IpAddr::v4(quad[0], quad[1], quad[2], quad[3]);
}

uint8_t leading_bits_mask(unsigned bits) {
    return static_cast<uint8_t>(bits >= 8 ? 0xffU : 0xff00U >> bits);
}

// Index of the family's first byte within the 16 bytes.
unsigned first_byte(const IpAddr& address) {
    return address.is_v4() ? 12 : 0;
}

}  // namespace

Result<IpAddr> IpAddr::parse(std::string_view text) {
    if (text.find(':') == std::string_view::npos) {
        return parse_v4(text);
    }
    std::array<char, INET6_ADDRSTRLEN + 1> buffer{};
    if (text.size() >= buffer.size() || text.find('\0') != std::string_view::npos) {
        return bad_address(text, "too long for IPv6");
    }
    std::memcpy(buffer.data(), text.data(), text.size());
    std::array<uint8_t, 16> bytes{};
    if (inet_pton(AF_INET6, buffer.data(), bytes.data()) != 1) {
        return bad_address(text, "not an IPv6 address (RFC 4291; no zone, no port, no prefix)");
    }
    const IpAddr address = v6(bytes);
    if (address.is_v4()) {
        return bad_address(text, "IPv4-mapped IPv6 is not accepted");
    }
    return address;
}

bool IpAddr::is_unspecified() const noexcept {
    return *this == IpAddr() || *this == v4(0, 0, 0, 0);
}
bool IpAddr::is_loopback() const noexcept {
    static constexpr IpAddr kLoopback6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
    return is_v4() ? bytes_[12] == 127 : *this == kLoopback6;
}
bool IpAddr::is_link_local() const noexcept {
    return is_v4() ? (bytes_[12] == 169 && bytes_[13] == 254)
                   : (bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80);
}
bool IpAddr::is_multicast() const noexcept {
    return is_v4() ? (bytes_[12] & 0xf0) == 0xe0 : bytes_[0] == 0xff;
}
bool IpAddr::is_reserved_v4() const noexcept {
    return is_v4() && bytes_[12] >= 240;
}

std::string IpAddr::to_string() const {
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    if (is_v4()) {
        inet_ntop(AF_INET, bytes_.data() + 12, buffer.data(), buffer.size());
    } else {
        inet_ntop(AF_INET6, bytes_.data(), buffer.data(), buffer.size());
    }
    return buffer.data();
}

Result<Prefix> Prefix::make(const IpAddr& address, unsigned length) {
    if (length > address.bits()) {
        return fail(Errc::InvalidArgument, "prefix length " + std::to_string(length) + " exceeds the " +
                                               std::to_string(address.bits()) + " bits of " +
                                               address.to_string());
    }
    std::array<uint8_t, 16> bytes = address.bytes();
    unsigned left = length;
    for (unsigned i = first_byte(address); i < 16; ++i) {
        const unsigned here = left < 8 ? left : 8;
        bytes[i] = static_cast<uint8_t>(bytes[i] & leading_bits_mask(here));
        left -= here;
    }
    Prefix prefix;
    prefix.address_ = IpAddr::v6(bytes);
    prefix.length_ = static_cast<uint8_t>(length);
    return prefix;
}

Result<Prefix> Prefix::parse(std::string_view text) {
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return fail(Errc::InvalidArgument,
                    "\"" + std::string(text.substr(0, 64)) + "\" is not a CIDR: it has no /length");
    }
    PENSTOCK_TRY(const auto address, IpAddr::parse(text.substr(0, slash)));
    const auto length = whole_number<unsigned>(text.substr(slash + 1));
    if (!length) {
        return fail(Errc::InvalidArgument,
                    "\"" + std::string(text.substr(0, 64)) + "\" is not a CIDR: its length is not a number");
    }
    return make(address, *length);
}

Prefix Prefix::host(const IpAddr& address) noexcept {
    Prefix prefix;
    prefix.address_ = address;
    prefix.length_ = address.bits();
    return prefix;
}

bool Prefix::contains(const IpAddr& address) const noexcept {
    if (address.is_v4() != address_.is_v4()) {
        return false;
    }
    unsigned left = length_;
    for (unsigned i = first_byte(address_); i < 16 && left > 0; ++i) {
        const unsigned here = left < 8 ? left : 8;
        if (((address.bytes()[i] ^ address_.bytes()[i]) & leading_bits_mask(here)) != 0) {
            return false;
        }
        left -= here;
    }
    return true;
}

std::string Prefix::to_string() const {
    return address_.to_string() + "/" + std::to_string(length_);
}

Result<MacAddr> MacAddr::parse(std::string_view text) {
    MacAddr mac;
    const auto refuse = [&] {
        return fail(Errc::InvalidArgument, "\"" + std::string(text.substr(0, 64)) +
                                               "\" is not a MAC address: six hex pairs joined by ':'");
    };
    if (text.size() != 17) {
        return refuse();
    }
    for (size_t i = 0; i < 6; ++i) {
        const std::string_view pair = text.substr(i * 3, 2);
        const auto [end, error] = std::from_chars(pair.data(), pair.data() + 2, mac.bytes[i], 16);
        if (error != std::errc{} || end != pair.data() + 2 || (i < 5 && text[i * 3 + 2] != ':')) {
            return refuse();
        }
    }
    return mac;
}

std::string MacAddr::to_string() const {
    std::array<char, 18> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1], bytes[2],
                  bytes[3], bytes[4], bytes[5]);
    return buffer.data();
}

}  // namespace penstock
