// SPDX-License-Identifier: Apache-2.0
// Collects the response of one request for a machine that reads it as a whole.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "control/kube/transport.hpp"

namespace penstock::kube {

// A handler for one request at a time; source thread only. Does not cancel: the owner does.
class OneResponse final : public ResponseHandler {
 public:
    // Keeps at most `bytes_max` bytes of the body; the rest is discarded, and is_cut() is set.
    explicit OneResponse(size_t bytes_max) : bytes_max_(bytes_max) {}

    // Call before each request.
    void reset() { *this = OneResponse(bytes_max_); }
    [[nodiscard]] bool is_complete() const { return is_complete_; }
    // The HTTP status; 0: no complete response.
    [[nodiscard]] int status() const { return error_ ? 0 : status_; }
    [[nodiscard]] bool is_success() const { return status() >= 200 && status() < 300; }
    // A later attempt may succeed: no response, or a temporary status.
    [[nodiscard]] bool may_work_later() const {
        return status() == 0 || status() == 401 || status() == 408 || status() == 429 || status() >= 500;
    }
    [[nodiscard]] std::optional<std::chrono::seconds> retry_after() const { return retry_after_; }
    [[nodiscard]] const std::string& body() const { return body_; }
    [[nodiscard]] bool is_cut() const { return is_cut_; }
    // "status 503" or the transport's error. Bodies are not included: they may contain secrets.
    [[nodiscard]] std::string what() const {
        return error_ ? error_->what : "status " + std::to_string(status_);
    }

    void on_head(const ResponseHead& head) override {
        status_ = head.status;
        retry_after_ = head.retry_after;
    }
    void on_body(std::string_view bytes) override {
        const size_t room = bytes_max_ - std::min(bytes_max_, body_.size());
        is_cut_ |= bytes.size() > room;
        body_ += bytes.substr(0, room);
    }
    void on_end(const std::optional<TransportError>& error) override {
        error_ = error;
        is_complete_ = true;
    }

 private:
    size_t bytes_max_;
    int status_ = 0;
    std::optional<std::chrono::seconds> retry_after_;
    std::string body_;
    bool is_cut_ = false;
    std::optional<TransportError> error_;
    bool is_complete_ = false;
};

}  // namespace penstock::kube
