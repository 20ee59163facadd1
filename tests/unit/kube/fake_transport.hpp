// SPDX-License-Identifier: Apache-2.0
// A Transport that records its requests and answers when the test calls answer().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/transport.hpp"

namespace penstock::kube::test {

class FakeTransport final : public Transport {
 public:
    struct Open {
        RequestId id;
        Request request;
        ResponseHandler* handler = nullptr;
    };

    RequestId start(Request request, ResponseHandler& handler) override {
        const RequestId id{next_id_++};
        started.push_back(request);
        open.push_back({id, std::move(request), &handler});
        return id;
    }
    void cancel(RequestId id) override {
        std::erase_if(open, [id](const Open& each) { return each.id == id; });
    }
    void credentials_rejected() override { ++rejected; }
    [[nodiscard]] std::string without_secrets(std::string text) const override {
        const size_t at = text.find(kToken);
        return at == std::string::npos ? text : text.replace(at, kToken.size(), "***");
    }
    static constexpr std::string_view kToken = "t0ken-of-this-test";

    // Completes the oldest open request.
    void answer(int status, std::string_view body = "{}",
                std::optional<std::chrono::seconds> retry_after = std::nullopt) {
        ASSERT_FALSE(open.empty()) << "nothing was asked";
        ResponseHandler& handler = *take().handler;
        handler.on_head({.status = status, .retry_after = retry_after, .content_type = "application/json"});
        handler.on_body(body);
        handler.on_end(std::nullopt);
    }
    void fail(TransportError::Kind kind, std::string what) {
        ASSERT_FALSE(open.empty()) << "nothing was asked";
        take().handler->on_end(TransportError{kind, std::move(what)});
    }

    std::vector<Request> started;  // all, in order
    std::vector<Open> open;        // not answered yet
    int rejected = 0;

 private:
    Open take() {
        Open oldest = std::move(open.front());
        open.erase(open.begin());
        return oldest;
    }
    uint64_t next_id_ = 1;
};

}  // namespace penstock::kube::test
