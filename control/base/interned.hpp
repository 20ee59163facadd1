// SPDX-License-Identifier: Apache-2.0
// A value with few distinct instances and many uses: the names of nodes and zones, which each of 250,000
// endpoints carries. Equal values share one copy, so a use costs a pointer, and comparing two costs comparing
// pointers. A copy is freed with its last use, because nodes come and go for as long as the program runs.
//
// Any thread may create, copy and destroy them; one object is used by one thread at a time, like a
// shared_ptr.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock {

// `Value` is std::string or std::vector<std::string>.
template <typename Value>
class Interned {
 public:
    using View =
        std::conditional_t<std::same_as<Value, std::string>, std::string_view, std::span<const std::string>>;

    // The empty value; costs nothing.
    Interned() noexcept = default;
    // Converts like Value itself, so that users need not name the type of such a member.
    template <typename From>
        requires std::convertible_to<const From&, View> && (!std::same_as<From, Interned>)
    Interned(const From& value) : entry_(find_or_add(value)) {}  // NOLINT(google-explicit-constructor)
    Interned(std::initializer_list<std::string> values)
        requires std::same_as<Value, std::vector<std::string>>
        : entry_(find_or_add({values.begin(), values.size()})) {}
    Interned(const Interned& other) noexcept;
    Interned(Interned&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Interned& operator=(Interned other) noexcept {
        std::swap(entry_, other.entry_);
        return *this;
    }
    ~Interned() {
        if (entry_ != nullptr) {
            release();
        }
    }

    [[nodiscard]] const Value& value() const noexcept;
    operator View() const noexcept { return value(); }  // NOLINT(google-explicit-constructor)
    [[nodiscard]] bool empty() const noexcept { return entry_ == nullptr; }

    friend bool operator==(const Interned& left, const Interned& right) noexcept {
        return left.entry_ == right.entry_;
    }
    // Compares without converting the other side, which would require a lookup.
    template <typename Text>
        requires std::convertible_to<const Text&, std::string_view> && std::same_as<Value, std::string> &&
                 (!std::same_as<Text, Interned>)
    friend bool operator==(const Interned& left, const Text& right) noexcept {
        return View(left) == std::string_view(right);
    }

 private:
    struct Entry;
    class Pool;

    static Entry* find_or_add(View value);
    void release() noexcept;

    Entry* entry_ = nullptr;  // null only for the empty value
};

using InternedText = Interned<std::string>;
using InternedTexts = Interned<std::vector<std::string>>;

extern template class Interned<std::string>;
extern template class Interned<std::vector<std::string>>;

}  // namespace penstock
