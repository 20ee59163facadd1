// SPDX-License-Identifier: Apache-2.0
// The recorded answer to one request, and the loop that waits for it.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "control/kube/client/curl_transport.hpp"
#include "control/kube/transport.hpp"

namespace penstock::test {

struct RecordedAnswer : kube::ResponseHandler {
    std::optional<kube::ResponseHead> head;
    std::string body;
    bool has_ended = false;
    std::optional<kube::TransportError> error;
    int call_backs = 0;
    int call_backs_after_end = 0;

    void on_head(const kube::ResponseHead& got) override {
        count();
        head = got;
    }
    void on_body(std::string_view bytes) override {
        count();
        body += bytes;
    }
    void on_end(const std::optional<kube::TransportError>& got) override {
        count();
        has_ended = true;
        error = got;
    }
    int status() const { return head ? head->status : 0; }
    bool is_well() const { return has_ended && !error; }
    // For EXPECT_EQ: -1 if there is no error.
    int kind() const { return error ? static_cast<int>(error->kind) : -1; }
    std::string what() const { return error ? error->what : ""; }

 private:
    void count() {
        ++call_backs;
        call_backs_after_end += has_ended ? 1 : 0;
    }
};

// Polls until `is_so` returns true. False after a minute, which no test should need even on a slow machine.
inline bool poll_until(kube::CurlTransport& transport, const std::function<bool()>& is_so,
                       std::chrono::milliseconds limit = std::chrono::minutes(1)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!is_so()) {
        if (std::chrono::steady_clock::now() >= deadline) {
            return false;
        }
        transport.poll(std::chrono::milliseconds(20));
    }
    return true;
}

// Processor time used by this thread so far; other load on the machine does not change it.
inline std::chrono::microseconds thread_cpu_time() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    const auto in_us = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return in_us(used.ru_utime) + in_us(used.ru_stime);
}

}  // namespace penstock::test
