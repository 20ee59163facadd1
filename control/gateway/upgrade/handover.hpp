// SPDX-License-Identifier: Apache-2.0
// A gateway process's side of an upgrade: its socket to the supervisor, which it has inherited. Without a
// supervisor (--supervise off) nothing here has an effect.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/gateway/upgrade/messages.hpp"
#include "control/gateway/upgrade/upgrade_requests.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// Environment of a supervised process: the number of the socket, whether it waits for a former process, and
// the number of the descriptor that is its log once it forwards.
inline constexpr const char* kUpgradeSocketVariable = "PENSTOCK_UPGRADE_SOCKET";
inline constexpr const char* kUpgradeSuccessorVariable = "PENSTOCK_UPGRADE_SUCCESSOR";
inline constexpr const char* kUpgradeLogVariable = "PENSTOCK_UPGRADE_LOG";

// Main thread.
class Handover {
 public:
    // From the environment, whose variables it removes. Call before any thread exists.
    static Handover inherit();

    [[nodiscard]] bool is_supervised() const noexcept { return socket_.is_open(); }
    [[nodiscard]] bool is_successor() const noexcept { return is_successor_; }
    [[nodiscard]] int fd() const noexcept { return socket_.get(); }

    // Records the time of a step (step_names.hpp). A successor reports it at once.
    void note_step(const char* name);
    // Successor: a part of a step is done, and the supervisor waits for the next one.
    void note_progress();
    // Successor: reports that it is prepared, and waits for the order to take over. Unavailable: the
    // supervisor has ended.
    Status await_take_over(const std::string& version);
    // Twin `name` of the former process; not open: there is none.
    [[nodiscard]] Descriptor take_twin(const std::string& name);
    // The connection of the former process to a routing daemon; not open: there was none.
    [[nodiscard]] Descriptor take_connection();
    // Settings of interfaces that the former process had changed and has left as they are.
    [[nodiscard]] const v1::UpgradeNote& former() const noexcept { return former_; }
    // Successor: how the former process has laid out its memory; empty: it has not reported it.
    [[nodiscard]] const v1::UpgradeMemory& memory() const noexcept { return memory_; }

    // `memory`: how this process has laid out its memory, for its successors.
    void keep_twins(std::span<const int> twins, v1::UpgradeMemory memory);
    // The process forwards and serves its API. The log of a successor is the supervisor's from then on.
    void note_forwarding();
    // `note`: with UpgradeNote.changes and bfd only. `connection`: to a routing daemon; negative: none.
    void note_handed_over(v1::UpgradeNote note, int connection);
    // The order to hand over has arrived. Reads the supervisor's messages; those about requests go to
    // `requests`. Never blocks.
    [[nodiscard]] bool must_hand_over(UpgradeRequests& requests);
    [[nodiscard]] bool must_hand_over() const noexcept { return must_hand_over_; }
    // For UpgradeRequests; null without a supervisor. Valid as long as the socket is open.
    [[nodiscard]] UpgradeRequests::Send sender() const;

 private:
    void send(UpgradeMessage message, v1::UpgradeNote note, std::span<const int> descriptors = {});
    Descriptor socket_, log_;
    bool is_successor_ = false;
    bool reports_steps_ = false;  // a successor that does not serve its API yet
    bool must_hand_over_ = false;
    std::vector<Descriptor> inherited_;  // twins and a connection of the former process
    v1::UpgradeNote former_;
    v1::UpgradeMemory memory_;  // of the former process
    v1::UpgradeNote steps_;     // that are not reported yet
};

}  // namespace penstock::gateway
