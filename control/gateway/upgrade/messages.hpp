// SPDX-License-Identifier: Apache-2.0
// Messages between a gateway process and its supervisor, over a socketpair that keeps message boundaries: one
// byte for the kind, a v1::UpgradeNote, and descriptors where the message has them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "control/base/descriptor.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::gateway {

enum class UpgradeMessage : char {
    // gateway -> supervisor
    Twins = 't',     // its twins, which stay while the supervisor has them, and how its memory is laid out
    Request = 'u',   // a client asks for an upgrade
    Prepared = 'p',  // a successor can take over
    // Workers have stopped, locks are released, and ports are as the successor needs them; with the
    // connection to a routing daemon.
    HandedOver = 'h',
    Steps = 's',     // of a successor, until its API is served
    Forwards = 'f',  // the successor forwards, and its API is served
    // supervisor -> gateway
    Answer = 'a',    // to Request
    Record = 'R',    // the last upgrade, whenever it has changed
    HandOver = 'H',  // to the process that forwards
    TakeOver = 'T',  // to the successor, with the twins of the former process and those of HandedOver
    Memory = 'M',    // to the successor, before it starts: how the former process has laid out its memory
};

constexpr size_t kDescriptorsMax = 64;  // of one message
// Bytes of a message. A longer one is not sent; a received one that is longer has an empty note.
constexpr size_t kMessageMax = 64 * 1024;

struct ReceivedMessage {
    UpgradeMessage message{};
    v1::UpgradeNote note;
    std::vector<Descriptor> descriptors;
};

// Unavailable: the other side has ended. Exhausted: the note is too long.
Status send_message(int socket, UpgradeMessage message, const v1::UpgradeNote& note = {},
                    std::span<const int> descriptors = {});
// Waits for the next message unless `socket` is non-blocking; empty: there is none, or the other side has
// ended.
std::optional<ReceivedMessage> receive_message(int socket);
// The kind of the next message, which stays; empty: there is none. Never waits.
std::optional<UpgradeMessage> next_message(int socket);

}  // namespace penstock::gateway
