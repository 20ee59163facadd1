// SPDX-License-Identifier: Apache-2.0
// A reflector of Services with a test clock and a fake transport.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/follow/reflector.hpp"
#include "tests/unit/kube/api_text.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::kube::test {

using namespace std::chrono_literals;

class ReflectorFixture : public testing::Test {
 protected:
    using Query = std::map<std::string, std::string>;
    using State = CollectionStatus::State;

    void begin(bool streamed_lists = false) {
        reflector_ = std::make_unique<Reflector>(
            Collection{ObjectKind::Service, "v1", "/api/v1/services", "", field_selector_}, store_.services(),
            server_, streamed_lists);
        settle();
    }
    // Completes a list at `version` and opens the watch.
    void begin_watching(const std::string& version, const std::vector<std::string>& items = {}) {
        begin();
        reply(200, list_text(version, items));
        head(200);
        store_.slices().begin_list();
        store_.slices().commit_list(ObjectTable::Missing::Erase);
        (void)store_.take_changes();
    }

    // Runs the program's loop until it would only wait.
    void settle() {
        int rounds = 0;
        do {
            reflector_->on_time(now_);
            ASSERT_LT(++rounds, 100) << "it goes in a circle without pause";
        } while (reflector_->next_deadline() <= now_);
    }
    void wait(std::chrono::milliseconds time) {
        now_ += time;
        settle();
    }
    // Waits until the next request is made; returns the time that it took.
    std::chrono::milliseconds wait_for_request() {
        const auto before = now_;
        for (int steps = 0; transport_.open.empty() && steps < 100; ++steps) {
            now_ = std::max(now_, reflector_->next_deadline());
            settle();
        }
        EXPECT_FALSE(transport_.open.empty()) << "no request came";
        return std::chrono::round<std::chrono::milliseconds>(now_ - before);
    }

    // The response to the open request, in pieces.
    void head(int status, std::optional<std::chrono::seconds> retry_after = std::nullopt) {
        ASSERT_EQ(transport_.open.size(), 1U);
        transport_.open[0].handler->on_head(
            {.status = status, .retry_after = retry_after, .content_type = "application/json"});
        settle();
    }
    void body(std::string_view bytes) {
        ASSERT_EQ(transport_.open.size(), 1U);
        transport_.open[0].handler->on_body(bytes);
        settle();
    }
    void end(std::optional<TransportError> error = std::nullopt) {
        ASSERT_EQ(transport_.open.size(), 1U);
        ResponseHandler& handler = *transport_.open[0].handler;
        transport_.open.clear();
        handler.on_end(error);
        settle();
    }
    void reply(int status, std::string_view text = "",
               std::optional<std::chrono::seconds> retry_after = std::nullopt) {
        ASSERT_EQ(transport_.open.size(), 1U) << "nothing was asked";
        const Transport::RequestId id = transport_.open[0].id;
        ResponseHandler& handler = *transport_.open[0].handler;
        handler.on_head({.status = status, .retry_after = retry_after, .content_type = "application/json"});
        handler.on_body(text);
        if (!transport_.open.empty() && transport_.open[0].id == id) {
            transport_.open.clear();
            handler.on_end(std::nullopt);
        }
        settle();
    }
    void fail(TransportError::Kind kind = TransportError::Kind::Connect) {
        end(TransportError{kind, "it failed"});
    }

    [[nodiscard]] bool is_asking() const { return !transport_.open.empty(); }
    [[nodiscard]] Query asked() const { return query_of(transport_.started.back().target); }
    [[nodiscard]] bool is_watch() const { return asked().contains("watch"); }
    [[nodiscard]] size_t requests() const { return transport_.started.size(); }
    [[nodiscard]] CollectionStatus status() const { return reflector_->status(now_); }
    // The Services in the store: name -> port.
    [[nodiscard]] std::map<std::string, int64_t> served() {
        services_.apply(store_.take_changes());
        std::map<std::string, int64_t> ports;
        for (const auto& [name, service] : services_.services) {
            ports.emplace(name.name, service->ports.at(0).port);
        }
        return ports;
    }
    // Lists the other collections, so that the store releases changes when a test lists only Services.
    void list_the_others() {
        store_.slices().begin_list();
        store_.slices().commit_list(ObjectTable::Missing::Erase);
    }

    std::string field_selector_;
    double draw_ = 0.0;  // the next random number
    std::chrono::steady_clock::time_point now_{1h};
    FakeTransport transport_;
    LogLines log_;
    Decoder decoder_;
    ServerAccess server_{transport_, decoder_, [this] { return draw_; }, log_};
    Store store_{false, log_};
    Objects services_;
    std::unique_ptr<Reflector> reflector_;
};

}  // namespace penstock::kube::test
