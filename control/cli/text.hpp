// How single values of the API look in tables. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/v1/status.pb.h"
#include "penstock/v1/types.pb.h"

namespace penstock::cli {

[[nodiscard]] std::string text_of(v1::Protocol protocol);    // "TCP"
[[nodiscard]] std::string text_of(v1::Scheduler scheduler);  // "mh"
[[nodiscard]] std::string text_of(
    const v1::SocketAddress& address);  // "10.0.0.1:80", "[2001:db8::1]:80"; "" for none
[[nodiscard]] std::string host_text(
    const std::string& address);  // an IPv6 address in brackets, as it stands before a port
[[nodiscard]] std::string socket_text(const std::string& address, uint32_t port);
[[nodiscard]] std::string text_of(const v1::ServiceKey& key);  // "default/web:http/TCP"
[[nodiscard]] std::string health_text(
    v1::BackendStatus::Health health);  // "up", "down", "unprobed"; "-" where nobody asks
// Two leading units: "0.25s", "12s", "3m20s", "5h1m", "2d3h".
[[nodiscard]] std::string duration_text(uint64_t milliseconds);
// "a,b,c", or the first `shown_max` and how many more: "a,b,+3".
[[nodiscard]] std::string list_text(const std::vector<std::string>& entries, size_t shown_max);

}  // namespace penstock::cli
