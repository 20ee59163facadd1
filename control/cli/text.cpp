// SPDX-License-Identifier: Apache-2.0
#include "control/cli/text.hpp"

namespace penstock::cli {

std::string text_of(v1::Protocol protocol) {
    switch (protocol) {
        case v1::PROTOCOL_TCP:
            return "TCP";
        case v1::PROTOCOL_UDP:
            return "UDP";
        case v1::PROTOCOL_SCTP:
            return "SCTP";
        default:
            return std::to_string(static_cast<int>(protocol));
    }
}

std::string text_of(v1::Scheduler scheduler) {
    switch (scheduler) {
        case v1::SCHEDULER_UNSPECIFIED:
        case v1::SCHEDULER_RR:
            return "rr";
        case v1::SCHEDULER_RANDOM:
            return "random";
        case v1::SCHEDULER_MH:
            return "mh";
        case v1::SCHEDULER_WRR:
            return "wrr";
        case v1::SCHEDULER_LC:
            return "lc";
        case v1::SCHEDULER_WLC:
            return "wlc";
        case v1::SCHEDULER_SH:
            return "sh";
        case v1::SCHEDULER_DH:
            return "dh";
        case v1::SCHEDULER_SED:
            return "sed";
        case v1::SCHEDULER_NQ:
            return "nq";
        case v1::SCHEDULER_P2C:
            return "p2c";
        default:
            return std::to_string(static_cast<int>(scheduler));
    }
}

std::string host_text(const std::string& address) {
    return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

std::string socket_text(const std::string& address, uint32_t port) {
    return host_text(address) + ":" + std::to_string(port);
}

std::string text_of(const v1::SocketAddress& address) {
    return address.address().empty() ? std::string() : socket_text(address.address(), address.port());
}

std::string text_of(const v1::ServiceKey& key) {
    return key.namespace_() + "/" + key.name() + (key.port_name().empty() ? "" : ":" + key.port_name()) +
           "/" + text_of(key.protocol());
}

std::string text_of(const v1::ServiceName& name) {
    return name.namespace_() + "/" + name.name();
}

std::string count_text(uint64_t count) {
    return count == UINT64_MAX ? "2^64-1+" : std::to_string(count);
}

std::string indented_line(const std::string& name, const std::string& value) {
    constexpr size_t kNameWidth = 16;
    return "  " + name + ":" + std::string(kNameWidth - name.size(), ' ') + value + "\n";
}

std::string health_text(v1::BackendStatus::Health health) {
    switch (health) {
        case v1::BackendStatus::HEALTH_UNPROBED:
            return "unprobed";
        case v1::BackendStatus::HEALTH_UP:
            return "up";
        case v1::BackendStatus::HEALTH_DOWN:
            return "down";
        default:
            return "-";
    }
}

std::string duration_text(uint64_t milliseconds) {
    const uint64_t seconds = milliseconds / 1000;
    if (seconds < 10) {
        const std::string hundredths = std::to_string(milliseconds % 1000 / 10);
        return std::to_string(seconds) + "." + (hundredths.size() < 2 ? "0" : "") + hundredths + "s";
    }
    const auto two = [](uint64_t big, const char* big_unit, uint64_t small, const char* small_unit) {
        return std::to_string(big) + big_unit + (small == 0 ? "" : std::to_string(small) + small_unit);
    };
    if (seconds < 60) {
        return std::to_string(seconds) + "s";
    }
    if (seconds < 3600) {
        return two(seconds / 60, "m", seconds % 60, "s");
    }
    if (seconds < 86'400) {
        return two(seconds / 3600, "h", seconds % 3600 / 60, "m");
    }
    return two(seconds / 86'400, "d", seconds % 86'400 / 3600, "h");
}

std::string list_text(const std::vector<std::string>& entries, size_t shown_max) {
    std::string text;
    for (size_t i = 0; i < entries.size(); ++i) {
        // Replacing a single entry by "+1" would save no space.
        if (i == shown_max && entries.size() > shown_max + 1) {
            return text + ",+" + std::to_string(entries.size() - shown_max);
        }
        text += (i == 0 ? "" : ",") + entries[i];
    }
    return text;
}

}  // namespace penstock::cli
