// An Event as the API server wants it written: names, times, bodies. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/kube/objects.hpp"

namespace penstock::kube {

// What there is to tell, and about what.
struct Event {
    enum class Type : uint8_t { Normal, Warning };
    std::string kind;   // "Service", "EndpointSlice", "Node"
    ObjectName object;  // no namespace: cluster-scoped
    Type type = Type::Warning;
    std::string reason;    // CamelCase
    std::string message;   // any length
    std::string reporter;  // the gateway's name
    // Said once in the life of the object: after a restart too, as long as the API server keeps the Event (EVT-003).
    bool once = false;
    auto operator<=>(const Event&) const = default;
};

// What ties an Event to one life of an object; empty fields are left out.
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

// The first `bytes_max` bytes, or fewer where a character would be cut in two.
[[nodiscard]] std::string_view cut_utf8(std::string_view text, size_t bytes_max);
// "NAME.0123456789abcdef", a DNS subdomain whatever NAME is.
[[nodiscard]] std::string event_name(std::string_view object_name, uint64_t number);
// The same for the same thing told by the same gateway about the same life of an object.
[[nodiscard]] uint64_t number_of(const Event& event, const ObjectIdentity& identity);
// Where Events about cluster-scoped objects are, too: "default".
[[nodiscard]] std::string event_namespace(const Event& event);

// "/api/v1/namespaces/NAMESPACE/events", and "/NAME" behind it where there is one.
[[nodiscard]] std::string event_target(const Event& event, std::string_view name = {});
[[nodiscard]] std::string event_body(const Event& event, const ObjectIdentity& identity,
                                     const std::string& name, const EventTimes& times);
// A merge patch of the time alone.
[[nodiscard]] std::string found_body(const EventTimes& times);
// A merge patch that says it happened again.
[[nodiscard]] std::string repeat_body(const EventTimes& times);

}  // namespace penstock::kube
