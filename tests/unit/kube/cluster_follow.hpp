// SPDX-License-Identifier: Apache-2.0
// A ClusterSource on a test clock, and an API server that answers when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "control/kube/follow/cluster_source.hpp"
#include "tests/unit/kube/api_text.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::kube::test {

inline const std::string kServices = "/api/v1/services";
inline const std::string kNodes = "/api/v1/nodes";
inline const std::string kSlices = "/apis/discovery.k8s.io/v1/endpointslices";

// A test calls start() first.
class ClusterFollow : public testing::Test {
 protected:
    void start(ClusterSettings settings) {
        source_ = std::make_unique<ClusterSource>(std::move(settings), transport_, [] { return 0.0; });
        settle();
    }
    // Does everything that is due now.
    void settle() {
        int rounds = 0;
        do {
            source_->on_time(now_);
            ASSERT_LT(++rounds, 100) << "it goes in a circle without pause";
        } while (source_->next_deadline() <= now_);
    }
    void wait(std::chrono::milliseconds time) {
        const auto until = now_ + time;
        while (now_ < until) {
            now_ = std::min(until, std::max(now_ + std::chrono::milliseconds(1), source_->next_deadline()));
            settle();
        }
    }
    // The request of `path` that waits for an answer.
    [[nodiscard]] auto open(const std::string& path) {
        return std::ranges::find_if(transport_.open,
                                    [&](const auto& each) { return path_of(each.request.target) == path; });
    }
    [[nodiscard]] bool is_asked(const std::string& path) { return open(path) != transport_.open.end(); }
    // The head of an answer that goes on, as that of a watch.
    void head(const std::string& path) {
        ASSERT_TRUE(is_asked(path)) << path;
        open(path)->handler->on_head({.status = 200, .retry_after = std::nullopt, .content_type = ""});
        settle();
    }
    // A whole answer.
    void reply(const std::string& path, int status, const std::string& text = "") {
        ASSERT_TRUE(is_asked(path)) << path;
        ResponseHandler& handler = *open(path)->handler;
        transport_.open.erase(open(path));
        handler.on_head({.status = status, .retry_after = std::nullopt, .content_type = ""});
        handler.on_body(text);
        handler.on_end(std::nullopt);
        settle();
    }

    std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
    FakeTransport transport_;
    Objects objects_;
    std::unique_ptr<ClusterSource> source_;
};

}  // namespace penstock::kube::test
