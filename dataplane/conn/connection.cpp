// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/connection.hpp"

#include <array>

namespace penstock::conn {

std::string_view to_string(TcpState state) noexcept {
    static constexpr std::array<std::string_view, kTcpStates> kNames{
        "syn-sent", "syn-received", "picked-up", "established", "fin-forward", "fin-reverse", "time-wait",
        "closed", "resetting", "rst-forward", "rst-reverse",
        // The first and the second probe have the same name: the difference does not matter to an operator.
        "fin-forward-probed", "fin-reverse-probed", "rst-forward-probed", "rst-reverse-probed",
        "fin-forward-probed", "fin-reverse-probed", "rst-forward-probed", "rst-reverse-probed"};
    return kNames[static_cast<size_t>(state)];
}

std::string_view to_string(SctpState state) noexcept {
    static constexpr std::array<std::string_view, kSctpStates> kNames{
        "cookie-wait", "cookie-echoed",  "established", "restarting", "restarting",
        "shutdown",    "shutdown-acked", "closed",      "aborting"};
    return kNames[static_cast<size_t>(state)];
}

std::string_view to_string(DatagramState state) noexcept {
    return state == DatagramState::OneWay ? "one-way" : "two-way";
}

bool is_state(Protocol protocol, uint8_t state) noexcept {
    switch (protocol) {
        case Protocol::Tcp:
            return state < kTcpStates;
        case Protocol::Udp:
            return state <= static_cast<uint8_t>(DatagramState::TwoWay);
        case Protocol::Sctp:
            return state < kSctpStates;
    }
    return false;
}

std::string_view Connection::state_name() const noexcept {
    switch (forward.protocol) {
        case Protocol::Tcp:
            return to_string(tcp_state());
        case Protocol::Udp:
            return to_string(datagram_state());
        case Protocol::Sctp:
            return to_string(sctp_state());
    }
    return "unknown";
}

}  // namespace penstock::conn
