// SPDX-License-Identifier: Apache-2.0
// A gateway process's side of an upgrade: its socket to the supervisor, which it has inherited. Without a
// supervisor (--supervise off) nothing here has an effect.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/gateway/upgrade/messages.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// Environment of a supervised process: the number of the socket, and whether it waits for a former process.
inline constexpr const char* kUpgradeSocketVariable = "PENSTOCK_UPGRADE_SOCKET";
inline constexpr const char* kUpgradeSuccessorVariable = "PENSTOCK_UPGRADE_SUCCESSOR";

class Handover {
 public:
    // From the environment, whose variables it removes. Call before any thread exists.
    static Handover inherit();

    [[nodiscard]] bool is_supervised() const noexcept { return socket_.is_open(); }
    [[nodiscard]] bool is_successor() const noexcept { return is_successor_; }
    [[nodiscard]] int fd() const noexcept { return socket_.get(); }

    // Successor: reports that it is prepared, and waits for the order to take over. Unavailable: the
    // supervisor has ended.
    Status await_take_over();
    // Twin `name` of the former process; not open: there is none.
    [[nodiscard]] Descriptor take_twin(const std::string& name);

    void keep_twins(std::span<const int> twins) { send(UpgradeMessage::Twins, twins); }
    void note_forwarding() { send(UpgradeMessage::Forwards); }
    void note_handed_over() { send(UpgradeMessage::HandedOver); }
    // The order to hand over has arrived. Never blocks.
    [[nodiscard]] bool must_hand_over();

 private:
    void send(UpgradeMessage message, std::span<const int> descriptors = {});
    Descriptor socket_;
    bool is_successor_ = false;
    bool must_hand_over_ = false;
    std::vector<Descriptor> twins_;  // of the former process
};

}  // namespace penstock::gateway
