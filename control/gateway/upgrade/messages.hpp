// SPDX-License-Identifier: Apache-2.0
// Messages between a gateway process and its supervisor: one byte each over a socketpair that keeps message
// boundaries, with the descriptors of the twins where the message has them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/base/descriptor.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

enum class UpgradeMessage : char {
    // gateway -> supervisor
    Twins = 't',     // its twins, which stay while the supervisor has them
    Prepared = 'p',  // a successor can take over
    Forwards = 'f',
    HandedOver = 'h',  // ports are closed, locks are released
    // supervisor -> gateway
    HandOver = 'H',
    TakeOver = 'T',  // with the twins of the former process
};

constexpr size_t kTwinsMax = 64;  // descriptors of one message

struct ReceivedMessage {
    UpgradeMessage message{};
    std::vector<Descriptor> descriptors;
};

// Unavailable: the other side has ended.
Status send_message(int socket, UpgradeMessage message, std::span<const int> descriptors = {});
// Waits for the next message unless `socket` is non-blocking; empty: there is none, or the other side has
// ended.
std::optional<ReceivedMessage> receive_message(int socket);

}  // namespace penstock::gateway
