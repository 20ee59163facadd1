// SPDX-License-Identifier: Apache-2.0
// Text forms of single API values in tables. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/v1/status.pb.h"
#include "penstock/v1/sync.pb.h"
#include "penstock/v1/types.pb.h"

namespace penstock::cli {

[[nodiscard]] std::string text_of(v1::Protocol protocol);    // "TCP"
[[nodiscard]] std::string text_of(v1::Scheduler scheduler);  // "mh"
// "10.0.0.1:80", "[2001:db8::1]:80"; "" if unset.
[[nodiscard]] std::string text_of(const v1::SocketAddress& address);
// An IPv6 address is put in brackets, as required before a port.
[[nodiscard]] std::string host_text(const std::string& address);
[[nodiscard]] std::string socket_text(const std::string& address, uint32_t port);
[[nodiscard]] std::string text_of(const v1::ServiceKey& key);    // "default/web:http/TCP"
[[nodiscard]] std::string text_of(const v1::ServiceName& name);  // "default/web"
// A number of addresses; "2^64-1+" for the largest value, which stands for larger ones as well.
[[nodiscard]] std::string count_text(uint64_t count);
// A line of a description: "  Name:            value". `name` has at most 15 characters.
[[nodiscard]] std::string indented_line(const std::string& name, const std::string& value);
// "up", "down", "unprobed"; "-" if the backend is not probed.
[[nodiscard]] std::string health_text(v1::BackendStatus::Health health);
// The two largest units: "0.25s", "12s", "3m20s", "5h1m", "2d3h".
[[nodiscard]] std::string duration_text(uint64_t milliseconds);
// "a,b,c", or the first `shown_max` entries and the number of others: "a,b,+3".
[[nodiscard]] std::string list_text(const std::vector<std::string>& entries, size_t shown_max);
// All entries of a repeated field of texts, or `if_empty`.
template <typename Texts>
[[nodiscard]] std::string list_or(const Texts& texts, const char* if_empty) {
    const std::vector<std::string> entries(texts.begin(), texts.end());
    return entries.empty() ? if_empty : list_text(entries, entries.size());
}

}  // namespace penstock::cli
