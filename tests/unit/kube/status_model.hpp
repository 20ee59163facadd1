// SPDX-License-Identifier: Apache-2.0
// Model of the status of Services at an API server: versions, preconditions, strategic merge patches.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/kube/events/json_text.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/status/service_status.hpp"
#include "tests/unit/kube/api_text.hpp"

namespace penstock::kube::test {

inline std::string text_in(const simdjson::dom::element& object, const char* key) {
    std::string_view text;
    return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

struct ModelService {
    std::string name;
    int version = 1;
    std::vector<LoadBalancerIngress> ingress;
    // Fields of each condition by its type; integers as text.
    std::map<std::string, std::map<std::string, std::string>> conditions;

    void put(const Condition& condition) {
        conditions[condition.type] = {{"type", condition.type},
                                      {"status", condition.status},
                                      {"reason", condition.reason},
                                      {"message", condition.message},
                                      {"lastTransitionTime", "2020-01-01T00:00:00Z"}};
    }

    // The object as the API server sends it.
    [[nodiscard]] std::string text() const {
        std::string json = R"({"kind":"Service","metadata":{"name":")" + name +
                           R"(","namespace":"default","resourceVersion":")" + std::to_string(version) +
                           R"("},"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[)";
        for (const LoadBalancerIngress& entry : ingress) {
            json += json.back() == '[' ? "{" : ",{";
            add_text_if_any(json, "ip", entry.ip);
            add_text_if_any(json, "hostname", entry.hostname);
            add_text_if_any(json, "ipMode", entry.ip_mode);
            add_key(json, "ports");
            json += '[';
            for (const auto& port : entry.ports) {
                json += json.back() == '[' ? "{" : ",{";
                add_number(json, "port", port.port);
                add_text(json, "protocol", port.protocol);
                add_text_if_any(json, "error", port.error);
                json += '}';
            }
            json += "]}";
        }
        json += R"(]},"conditions":[)";
        for (const auto& [type, fields] : conditions) {
            json += json.back() == '[' ? "{" : ",{";
            for (const auto& [key, value] : fields) {
                add_text(json, key, value);
            }
            json += '}';
        }
        return json + "]}}";
    }

    [[nodiscard]] ServiceVersion decoded() const {
        Decoder decoder;
        auto object = decode_object(decoder, ObjectKind::Service, text());
        EXPECT_TRUE(object && object->object) << text();
        return {std::get<ServicePtr>(*object->object), object->resource_version};
    }
    [[nodiscard]] ServiceStatus status() const { return status_of(*decoded().object); }

    // Applies a PATCH of /status. Returns the HTTP status of the response.
    int apply(std::string_view patch) {
        simdjson::dom::parser parser;
        const simdjson::dom::element root = parser.parse(simdjson::padded_string(patch));
        const simdjson::dom::element metadata = root["metadata"];
        EXPECT_NE(text_in(metadata, "resourceVersion"), "") << "without a precondition: " << patch;
        if (text_in(metadata, "resourceVersion") != std::to_string(version)) {
            return 409;
        }
        ++version;
        const simdjson::dom::element status = root["status"];
        simdjson::dom::array list;
        if (status["loadBalancer"]["ingress"].get(list) == simdjson::SUCCESS) {
            ingress.clear();
            for (const auto entry : list) {
                ingress.push_back(read_entry(entry));
            }
        }
        if (status["conditions"].get(list) == simdjson::SUCCESS) {
            for (const auto condition : list) {
                merge_condition(condition);
            }
        }
        return 200;
    }

 private:
    static LoadBalancerIngress read_entry(const simdjson::dom::element& entry) {
        LoadBalancerIngress read{.ip = text_in(entry, "ip"),
                                 .hostname = text_in(entry, "hostname"),
                                 .ip_mode = text_in(entry, "ipMode"),
                                 .ports = {}};
        simdjson::dom::array ports;
        if (entry["ports"].get(ports) == simdjson::SUCCESS) {
            for (const auto port : ports) {
                read.ports.push_back({.port = int64_t{port["port"]},
                                      .protocol = text_in(port, "protocol"),
                                      .error = text_in(port, "error")});
            }
        }
        return read;
    }
    void merge_condition(const simdjson::dom::element& condition) {
        const std::string type = text_in(condition, "type");
        EXPECT_TRUE(type == kAllocatedCondition || type == kProgrammedCondition)
            << "not Penstock's: " << type;
        if (text_in(condition, "$patch") == "delete") {
            conditions.erase(type);
            return;
        }
        auto& fields = conditions[type];
        for (const char* key : {"type", "status", "reason", "message", "lastTransitionTime"}) {
            if (std::string value = text_in(condition, key); !value.empty()) {
                fields[key] = std::move(value);
            }
        }
        int64_t generation = 0;
        if (condition["observedGeneration"].get(generation) == simdjson::SUCCESS) {
            fields["observedGeneration"] = std::to_string(generation);
        }
        // Required by the API (metav1.Condition).
        for (const char* key : {"status", "reason", "lastTransitionTime"}) {
            EXPECT_TRUE(fields.contains(key)) << key << " of " << type;
        }
    }
};

inline Condition allocated(const std::string& status = "True") {
    return {std::string(kAllocatedCondition), status, status == "True" ? "Allocated" : "NoAddress", "text"};
}
inline Condition programmed(const std::string& status = "True") {
    return {std::string(kProgrammedCondition), status, "Programmed", "1 gateway"};
}
inline LoadBalancerIngress address(const std::string& ip, const std::string& mode = "VIP") {
    return {.ip = ip, .hostname = {}, .ip_mode = mode, .ports = {}};
}
// The desired status of a Service with these addresses.
inline ServiceStatus with_addresses(std::vector<LoadBalancerIngress> ingress) {
    return {.ingress = std::move(ingress), .conditions = {allocated()}, .observed_generation = {}};
}

}  // namespace penstock::kube::test
