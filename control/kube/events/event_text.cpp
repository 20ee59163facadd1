// SPDX-License-Identifier: Apache-2.0
#include "control/kube/events/event_text.hpp"

#include <cctype>

#include "control/kube/events/json_text.hpp"

namespace penstock::kube {
namespace {

constexpr size_t kSubdomainBytesMax = 253;  // RFC 1123, as Kubernetes applies it to names
constexpr size_t kInstanceBytesMax = 128;   // reportingInstance

std::string hex(uint64_t number) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (size_t i = text.size(); i-- > 0; number >>= 4) {
        text[i] = kDigits[number & 15];
    }
    return text;
}

}  // namespace

std::string_view cut_utf8(std::string_view text, size_t bytes_max) {
    if (text.size() <= bytes_max) {
        return text;
    }
    size_t end = bytes_max;
    // Skips continuation bytes back to the start of their character.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
        --end;
    }
    return text.substr(0, end);
}

std::string event_name(std::string_view object_name, uint64_t number) {
    const std::string suffix = "." + hex(number);
    std::string name;
    for (const char c : object_name.substr(0, kSubdomainBytesMax - suffix.size())) {
        const auto byte = static_cast<unsigned char>(c);
        name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : (c == '.' ? '.' : '-');
    }
    // The cut may be in the middle of "a-b" or "a.b", and no label begins or ends with a dash.
    while (!name.empty() && std::isalnum(static_cast<unsigned char>(name.back())) == 0) {
        name.pop_back();
    }
    return (name.empty() ? "object" : name) + suffix;
}

uint64_t number_of(const Event& event, const ObjectIdentity& identity) {
    // FNV-1a: unlike std::hash its result does not depend on the build.
    uint64_t hash = 0xcbf29ce484222325;
    for (const std::string_view part :
         {std::string_view(identity.uid), std::string_view(event.kind), std::string_view(event.reason),
          std::string_view(event.message), std::string_view(event.reporter)}) {
        for (const char c : part) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        }
        hash = (hash ^ 0xff) * 0x100000001b3;  // end of a part; no UTF-8 text has this byte
    }
    return hash;
}

std::string event_namespace(const Event& event) {
    return event.object.namespace_name.empty() ? "default" : event.object.namespace_name;
}

std::string event_target(const Event& event, std::string_view name) {
    return "/api/v1/namespaces/" + path_segment(event_namespace(event)) + "/events" +
           (name.empty() ? "" : "/" + path_segment(name));
}

std::string event_body(const Event& event, const ObjectIdentity& identity, const std::string& name,
                       const EventTimes& times) {
    std::string json = "{";
    add_text(json, "apiVersion", "v1");
    add_text(json, "kind", "Event");
    add_key(json, "metadata");
    json += '{';
    add_text(json, "name", name);
    add_text(json, "namespace", event_namespace(event));
    json += '}';
    add_key(json, "involvedObject");
    json += '{';
    add_text(json, "apiVersion", identity.api_version);
    add_text(json, "kind", event.kind);
    add_text_if_any(json, "namespace", event.object.namespace_name);
    add_text(json, "name", event.object.name);
    add_text_if_any(json, "uid", identity.uid);
    add_text_if_any(json, "resourceVersion", identity.resource_version);
    json += '}';
    add_text(json, "type", event.type == Event::Type::Warning ? "Warning" : "Normal");
    add_text(json, "reason", event.reason);
    add_text(json, "message", cut_utf8(event.message, kEventMessageBytesMax));
    add_key(json, "source");
    json += R"({"component":"penstock"})";
    add_text(json, "reportingComponent", "penstock");
    add_text(json, "reportingInstance", cut_utf8(event.reporter, kInstanceBytesMax));
    add_text(json, "firstTimestamp", time_text(times.first));
    add_text(json, "lastTimestamp", time_text(times.last));
    add_key(json, "count");
    json += std::to_string(times.count) + "}";
    return json;
}

std::string found_body(const EventTimes& times) {
    return "{\"lastTimestamp\":\"" + time_text(times.last) + "\"}";
}

std::string repeat_body(const EventTimes& times) {
    return "{\"count\":" + std::to_string(times.count) + ",\"lastTimestamp\":\"" + time_text(times.last) +
           "\"}";
}

}  // namespace penstock::kube
