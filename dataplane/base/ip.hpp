// SPDX-License-Identifier: Apache-2.0
// IP addresses and prefixes of both families in one 16-byte type, so that each table and each key exists
// once.
//
// An IPv4 address is stored as the 96-bit prefix ::ffff:0:0 followed by its four bytes. This needs no family
// field. It cannot clash with a real IPv6 address: Penstock rejects IPv4-mapped IPv6 addresses everywhere, in
// objects (GEN-005) and on the wire (docs/adr/0003-ipv4-and-ipv6-address-representation.md).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/result.hpp"

namespace penstock {

enum class IpFamily : uint8_t { V4 = 4, V6 = 6 };

[[nodiscard]] constexpr const char* to_string(IpFamily family) noexcept {
    return family == IpFamily::V4 ? "IPv4" : "IPv6";
}
[[nodiscard]] constexpr IpFamily other_family(IpFamily family) noexcept {
    return family == IpFamily::V4 ? IpFamily::V6 : IpFamily::V4;
}

class IpAddr {
 public:
    // The unspecified IPv6 address, ::.
    constexpr IpAddr() = default;

    static constexpr IpAddr v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) noexcept {
        return IpAddr({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d});
    }
    static IpAddr v4(Be32 wire) noexcept {
        IpAddr address;
        // The last two bytes (ff ff) of the mapped prefix, and the address.
        store(address.bytes_.data() + 8, uint64_t{wire.raw()} << 32 | 0xffff'0000);
        return address;
    }
    // `bytes` in network order. Must not be IPv4-mapped; the parser drops such packets first.
    static constexpr IpAddr v6(const std::array<uint8_t, 16>& bytes) noexcept { return IpAddr(bytes); }

    // Parses an address in the notation of people and of the Kubernetes API. Leading zeros are decimal
    // (010.0.0.1 is 10.0.0.1). IPv4-mapped IPv6, zones (%eth0), ports and prefixes are rejected (GEN-005).
    // Error: InvalidArgument, which names the text and the rule.
    static Result<IpAddr> parse(std::string_view text);

    constexpr bool is_v4() const noexcept {
        if !consteval {  // the same in two loads; called for every packet
            return load<uint64_t>(bytes_.data()) == 0 && load<uint32_t>(bytes_.data() + 8) == 0xffff'0000;
        }
        for (size_t i = 0; i < 10; ++i) {
            if (bytes_[i] != 0) {
                return false;
            }
        }
        return bytes_[10] == 0xff && bytes_[11] == 0xff;
    }
    constexpr IpFamily family() const noexcept { return is_v4() ? IpFamily::V4 : IpFamily::V6; }
    // The four bytes in network order. Only where is_v4().
    Be32 v4_wire() const noexcept { return load<Be32>(bytes_.data() + 12); }
    // All sixteen bytes in network order; an IPv4 address in its mapped form.
    constexpr const std::array<uint8_t, 16>& bytes() const noexcept { return bytes_; }
    // Bits of its family: 32 or 128.
    constexpr uint8_t bits() const noexcept { return is_v4() ? 32 : 128; }

    bool is_unspecified() const noexcept;  // 0.0.0.0, ::
    bool is_loopback() const noexcept;     // 127.0.0.0/8, ::1
    bool is_link_local() const noexcept;   // 169.254.0.0/16, fe80::/10
    bool is_multicast() const noexcept;    // 224.0.0.0/4, ff00::/8
    bool is_reserved_v4() const noexcept;  // 240.0.0.0/4, limited broadcast included

    // Canonical text: dotted quad, or RFC 5952.
    std::string to_string() const;

    constexpr bool operator==(const IpAddr& other) const noexcept {
        if !consteval {  // GCC compiles the array comparison to a call of memcmp
            return ((load<uint64_t>(bytes_.data()) ^ load<uint64_t>(other.bytes_.data())) |
                    (load<uint64_t>(bytes_.data() + 8) ^ load<uint64_t>(other.bytes_.data() + 8))) == 0;
        }
        return bytes_ == other.bytes_;
    }
    constexpr auto operator<=>(const IpAddr&) const = default;

 private:
    constexpr explicit IpAddr(const std::array<uint8_t, 16>& bytes) noexcept : bytes_(bytes) {}
    std::array<uint8_t, 16> bytes_{};
};
static_assert(sizeof(IpAddr) == 16);

// An address with the bits behind its length cleared.
class Prefix {
 public:
    constexpr Prefix() = default;
    // `length` is in bits of the address's own family (0-32 or 0-128). Host bits are cleared.
    static Result<Prefix> make(const IpAddr& address, unsigned length);
    // "10.1.2.3/8" is 10.0.0.0/8 (SRC-002). A bare address is rejected.
    static Result<Prefix> parse(std::string_view text);
    // A single address: /32 or /128.
    static Prefix host(const IpAddr& address) noexcept;

    constexpr const IpAddr& address() const noexcept { return address_; }
    constexpr uint8_t length() const noexcept { return length_; }
    constexpr IpFamily family() const noexcept { return address_.family(); }
    // False if the families differ.
    bool contains(const IpAddr& address) const noexcept;
    std::string to_string() const;

    constexpr bool operator==(const Prefix&) const = default;
    constexpr auto operator<=>(const Prefix&) const = default;

 private:
    IpAddr address_;
    uint8_t length_ = 0;
};

// An Ethernet address.
struct MacAddr {
    std::array<uint8_t, 6> bytes{};
    constexpr bool is_multicast() const noexcept { return (bytes[0] & 1) != 0; }  // broadcast included
    constexpr bool is_zero() const noexcept { return bytes == std::array<uint8_t, 6>{}; }
    static Result<MacAddr> parse(std::string_view text);
    std::string to_string() const;  // 02:00:00:00:00:01
    constexpr bool operator==(const MacAddr&) const = default;
    constexpr auto operator<=>(const MacAddr&) const = default;
};
static_assert(sizeof(MacAddr) == 6);

}  // namespace penstock

template <>
struct std::hash<penstock::IpAddr> {
    size_t operator()(const penstock::IpAddr& address) const noexcept {
        const auto high = penstock::load<uint64_t>(address.bytes().data());
        const auto low = penstock::load<uint64_t>(address.bytes().data() + 8);
        // Not keyed: for control paths only.
        return static_cast<size_t>((high * 0x9e3779b97f4a7c15ULL) ^ (low * 0xc2b2ae3d27d4eb4fULL));
    }
};
