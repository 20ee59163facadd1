// SPDX-License-Identifier: Apache-2.0
// Integers and bytes in wire order. Be16 and Be32 hold network order and cannot be mixed with host integers
// by accident. load and store go through memcpy, so no alignment is assumed. A ByteView is read only after a
// length check.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock {

static_assert(std::endian::native == std::endian::little,
              "byte order conversions below assume a little-endian host");

class Be16 {
 public:
    constexpr Be16() = default;
    static constexpr Be16 from_host(uint16_t host) noexcept { return Be16(__builtin_bswap16(host)); }
    static constexpr Be16 from_raw(uint16_t raw) noexcept { return Be16(raw); }
    constexpr uint16_t host() const noexcept { return __builtin_bswap16(raw_); }
    constexpr uint16_t raw() const noexcept { return raw_; }
    constexpr bool operator==(const Be16&) const = default;

 private:
    constexpr explicit Be16(uint16_t raw) noexcept : raw_(raw) {}
    uint16_t raw_ = 0;
};

class Be32 {
 public:
    constexpr Be32() = default;
    static constexpr Be32 from_host(uint32_t host) noexcept { return Be32(__builtin_bswap32(host)); }
    static constexpr Be32 from_raw(uint32_t raw) noexcept { return Be32(raw); }
    constexpr uint32_t host() const noexcept { return __builtin_bswap32(raw_); }
    constexpr uint32_t raw() const noexcept { return raw_; }
    constexpr bool operator==(const Be32&) const = default;

 private:
    constexpr explicit Be32(uint32_t raw) noexcept : raw_(raw) {}
    uint32_t raw_ = 0;
};

static_assert(sizeof(Be16) == 2 && sizeof(Be32) == 4);

// Reads or writes a trivially copyable T at any address. The caller has checked that sizeof(T) bytes are
// available.
template <typename T>
[[nodiscard]] inline T load(const void* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}
template <typename T>
inline void store(void* to, const T& value) noexcept {
    std::memcpy(to, &value, sizeof(T));
}

using ByteView = std::span<const uint8_t>;

}  // namespace penstock
