// SPDX-License-Identifier: Apache-2.0
// Events in the format of the API server: names, times, bodies. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/kube/objects.hpp"

namespace penstock::kube {

// An Event: its content and the object it is about.
struct Event {
    enum class Type : uint8_t { Normal, Warning };
    std::string kind;   // "Service", "EndpointSlice", "Node"
    ObjectName object;  // no namespace: cluster-scoped
    Type type = Type::Warning;
    std::string reason;    // CamelCase
    std::string message;   // any length
    std::string reporter;  // the gateway's name
    // Posted once in the life of the object, also across restarts, as long as the API server keeps the Event
    // (EVT-003).
    bool once = false;
    auto operator<=>(const Event&) const = default;
};

// Binds an Event to one life of an object; empty fields are left out.
struct ObjectIdentity {
    std::string api_version = "v1";
    std::string uid;
    std::string resource_version;
};

struct EventTimes {
    uint64_t count = 1;
    std::chrono::system_clock::time_point first;
    std::chrono::system_clock::time_point last;
};

inline constexpr size_t kEventMessageBytesMax = 1024;  // EVT-001

// The first `bytes_max` bytes, or fewer, so that no UTF-8 character is split.
[[nodiscard]] std::string_view cut_utf8(std::string_view text, size_t bytes_max);
// "NAME.0123456789abcdef", a DNS subdomain for any NAME.
[[nodiscard]] std::string event_name(std::string_view object_name, uint64_t number);
// Equal for Events with the same content from the same gateway about the same life of an object.
[[nodiscard]] uint64_t number_of(const Event& event, const ObjectIdentity& identity);
// Namespace of the Event; "default" for Events about cluster-scoped objects.
[[nodiscard]] std::string event_namespace(const Event& event);

// "/api/v1/namespaces/NAMESPACE/events", followed by "/NAME" if a name is given.
[[nodiscard]] std::string event_target(const Event& event, std::string_view name = {});
[[nodiscard]] std::string event_body(const Event& event, const ObjectIdentity& identity,
                                     const std::string& name, const EventTimes& times);
// A merge patch of the time alone.
[[nodiscard]] std::string found_body(const EventTimes& times);
// A merge patch of count and time, for a repetition.
[[nodiscard]] std::string repeat_body(const EventTimes& times);

}  // namespace penstock::kube
