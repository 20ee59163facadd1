// SPDX-License-Identifier: Apache-2.0
// Texts as an API server sends them, as far as tests need them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::kube::test {

inline std::string service_text(const std::string& name, const std::string& version, int port = 80) {
    return R"({"kind":"Service","apiVersion":"v1","metadata":{"name":")" + name +
           R"(","namespace":"default","uid":"uid-)" + name + R"(","resourceVersion":")" + version +
           R"("},"spec":{"clusterIP":"10.96.0.1","ports":[{"port":)" + std::to_string(port) + "}]}}";
}

// A Service that cannot be decoded.
inline std::string odd_service_text(const std::string& name, const std::string& version) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default","resourceVersion":")" + version +
           R"("},"spec":{"ports":{}}})";
}

inline std::string list_text(const std::string& version, const std::vector<std::string>& items,
                             const std::string& continue_token = "",
                             const std::string& kind = "ServiceList") {
    std::string text = R"({"kind":")" + kind + R"(","apiVersion":"v1","metadata":{"resourceVersion":")" +
                       version + R"(","continue":")" + continue_token + R"("},"items":[)";
    for (size_t item = 0; item < items.size(); ++item) {
        text += (item == 0 ? "" : ",") + items[item];
    }
    return text + "]}";
}

inline std::string event_text(const std::string& type, const std::string& object) {
    return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

inline std::string bookmark_text(const std::string& version, bool ends_initial_events = false) {
    const std::string annotations =
        ends_initial_events ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "";
    return event_text("BOOKMARK", R"({"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":")" +
                                      version + R"(")" + annotations + R"(},"spec":{}})");
}

inline std::string status_text(int code, const std::string& reason, const std::string& message,
                               const std::string& details = "{}") {
    return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" + message +
           R"(","reason":")" + reason + R"(","details":)" + details + R"(,"code":)" + std::to_string(code) +
           "}";
}

// Path of a request target.
inline std::string path_of(std::string_view target) {
    return std::string(target.substr(0, target.find('?')));
}
inline std::map<std::string, std::string> query_of(std::string_view target) {
    std::map<std::string, std::string> query;
    while (target.find_first_of("?&") != std::string_view::npos) {
        target.remove_prefix(target.find_first_of("?&") + 1);
        const std::string_view one = target.substr(0, target.find('&'));
        query.emplace(one.substr(0, one.find('=')), one.substr(one.find('=') + 1));
    }
    return query;
}

}  // namespace penstock::kube::test
