// SPDX-License-Identifier: Apache-2.0
// A StatusWriter with a test clock, a fake transport, and a model of the API server and of the store.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/status/status_writer.hpp"
#include "tests/unit/kube/fake_transport.hpp"
#include "tests/unit/kube/status_model.hpp"

namespace penstock::kube::test {

// Fails the test if a request is started by a process that is not leader.
class LeaderTransport final : public Transport {
 public:
    explicit LeaderTransport(const bool& is_leader) : is_leader_(is_leader) {}
    RequestId start(Request request, ResponseHandler& handler) override {
        EXPECT_TRUE(is_leader_) << request.target;
        return fake.start(std::move(request), handler);
    }
    void cancel(RequestId id) override { fake.cancel(id); }
    void credentials_rejected() override { fake.credentials_rejected(); }
    [[nodiscard]] std::string without_secrets(std::string text) const override {
        return fake.without_secrets(std::move(text));
    }

    FakeTransport fake;

 private:
    const bool& is_leader_;
};

class StatusWriterFixture {
 public:
    explicit StatusWriterFixture(uint32_t status_per_s = kStatusRateDefault) : limiter(status_per_s) {}

    static ObjectName id(const std::string& name) { return {"default", name}; }

    // Creates the Service at the server and in the store.
    void create(const std::string& name, std::vector<LoadBalancerIngress> ingress = {},
                const std::vector<Condition>& conditions = {}) {
        ModelService model{.name = name, .version = 1, .ingress = std::move(ingress), .conditions = {}};
        for (const Condition& condition : conditions) {
            model.put(condition);
        }
        server.insert_or_assign(name, std::move(model));
        deliver(name);
    }
    // The watch brings the store up to date.
    void deliver(const std::string& name) {
        if (const auto found = server.find(name); found != server.end()) {
            store.insert_or_assign(id(name), found->second.decoded());
        } else {
            store.erase(id(name));
        }
        writer.object_changed(id(name));
    }
    void advance(std::chrono::milliseconds by = std::chrono::milliseconds(0)) {
        now += by;
        writer.advance(now, WallTime(std::chrono::seconds(1'700'000'000)) + (now - start));
    }
    // Moves the clock to the next wake, if there is one within `at_most`; otherwise by `at_most`.
    void advance_to_wake(std::chrono::milliseconds at_most) {
        const auto wake = writer.next_wake();
        now = std::clamp(wake.value_or(now + at_most), now, now + at_most);
        advance();
    }
    // Name of the Service that a request is about.
    static std::string name_in(const Request& request) {
        const std::string_view before = "/services/";
        const size_t at = request.target.find(before) + before.size();
        return request.target.substr(at, request.target.find('/', at) - at);
    }
    // The server executes the oldest request and responds.
    void respond() {
        ASSERT_FALSE(open().empty());
        const Request request = open().front().request;
        const auto found = server.find(name_in(request));
        const int status = found == server.end() ? 404 : found->second.apply(request.body);
        transport.fake.answer(status, status == 200 ? found->second.text() : "{}");
        advance();
    }
    void respond_all() {
        advance();
        while (!open().empty()) {
            respond();
        }
    }
    // Responses and watch events arrive, time passes, until nothing happens any more.
    void run_until_idle() {
        for (int round = 0; round < 10'000; ++round) {
            respond_all();
            for (const auto& [name, model] : server) {
                deliver(name);
            }
            advance();
            if (open().empty() && !writer.next_wake()) {
                return;
            }
            advance_to_wake(std::chrono::minutes(2));
        }
        ADD_FAILURE() << "it never ends";
    }
    std::vector<FakeTransport::Open>& open() { return transport.fake.open; }
    [[nodiscard]] size_t started() const { return transport.fake.started.size(); }
    // "IPAllocated web: Allocated 203.0.113.7"
    [[nodiscard]] std::vector<std::string> events() const {
        std::vector<std::string> lines;
        for (const Event& event : reported) {
            lines.push_back(event.reason + " " + event.object.name + ": " + event.message);
        }
        return lines;
    }

    const std::chrono::steady_clock::time_point start{std::chrono::hours(1)};
    std::chrono::steady_clock::time_point now = start;
    std::map<std::string, ModelService> server;
    std::map<ObjectName, ServiceVersion> store;
    std::vector<Event> reported;
    bool is_leader = true;
    int lead_calls_left = -1;  // not negative: leadership ends after so many calls of may_write()
    LeaderTransport transport{is_leader};
    WriteLimiter limiter;
    StatusWriter writer{transport,
                        limiter,
                        {.read = [this](const ObjectName& name) -> std::optional<ServiceVersion> {
                             const auto found = store.find(name);
                             return found == store.end() ? std::nullopt : std::optional(found->second);
                         },
                         .may_write =
                             [this] {
                                 if (lead_calls_left >= 0 && lead_calls_left-- == 0) {
                                     is_leader = false;
                                 }
                                 return is_leader;
                             },
                         .report = [this](Event event) { reported.push_back(std::move(event)); }},
                        [] { return 0.5; }};
};

class StatusTest : public testing::Test, protected StatusWriterFixture {
 protected:
    static ServiceStatus desired(const std::string& ip = "203.0.113.7") {
        return with_addresses({address(ip)});
    }
    // True if the server has this status.
    bool has(const std::string& name, const ServiceStatus& status) {
        return is_same_status(server.at(name).status(), status);
    }
    // Sends the write of a new Service "web"; the response is open.
    void send_first() {
        create("web");
        writer.set(id("web"), desired());
        advance();
        ASSERT_EQ(open().size(), 1u);
    }
    // Body of a response of 422.
    static std::string rejection(const std::string& message) { return status_text(422, "Invalid", message); }
};

}  // namespace penstock::kube::test
