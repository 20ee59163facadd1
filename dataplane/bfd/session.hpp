// SPDX-License-Identifier: Apache-2.0
// One BFD session in asynchronous mode (RFC 5880, 6.8), without echo, demand mode and authentication. A state
// machine without I/O: packets and times are arguments. The worker that runs the sessions only.
//
//   Down --(peer Down)--> Init --(peer Init or Up)--> Up    no packet for the detection time: Down
//   Down --(peer Init)--> Up                                peer Down or AdminDown: Down
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/bfd/control_packet.hpp"

namespace penstock::bfd {

// What the routing daemon requests of a session. Two sets of terms are of one session if is_same_session().
struct Terms {
    uint32_t discriminator = 0;  // local; not 0, unique among the sessions
    IpAddr local;
    IpAddr peer;                // of the family of `local`
    NicPortId egress;           // unset: multihop, by the route to the peer
    bool is_passive = false;    // sends nothing before a packet of the peer
    bool is_shut_down = false;  // administratively down
    bool control_plane_independent = false;
    uint8_t ttl_min = 255;  // of received packets
    uint8_t detect_multiplier = 3;
    uint32_t desired_min_tx_us = 50'000;
    uint32_t required_min_rx_us = 50'000;

    [[nodiscard]] bool is_multihop() const noexcept { return !egress.is_set(); }
    [[nodiscard]] bool is_same_session(const Terms& other) const noexcept {
        return local == other.local && peer == other.peer && egress == other.egress;
    }
    bool operator==(const Terms&) const = default;
};

// Of a session as the routing daemon learns it.
struct Status {
    State state = State::Down;
    Diagnostic diagnostic = Diagnostic::None;  // of the last change to Down
    uint32_t remote_discriminator = 0;         // 0: unknown
    ControlPacket remote;                      // the last packet of the peer; all 0 before it
    bool operator==(const Status&) const = default;
};

class Session {
 public:
    // RFC 5880, 6.8.3: the least interval of a session that is not up.
    static constexpr uint32_t kSlowUs = 1'000'000;

    Session() = default;
    // `salt`: any number, for the jitter.
    Session(const Terms& terms, TscRate rate, uint64_t salt, TscTime now) noexcept;
    // The session continues with the status that a former process had.
    void resume(const Status& status, TscTime now) noexcept;

    // Changes of intervals of a session that is up are agreed with the peer by a poll sequence (6.8.3).
    void change(const Terms& terms, TscTime now) noexcept;
    // A valid packet of the peer for this session.
    void receive(const ControlPacket& packet, TscTime now) noexcept;
    // Detects that the peer's packets have ended.
    void look(TscTime now) noexcept;

    [[nodiscard]] bool is_due(TscTime now) const noexcept;
    // The packet to be sent now; counts as sent. If is_due().
    [[nodiscard]] ControlPacket next(TscTime now) noexcept;
    // The packet that is due now cannot be sent; the next one is due after the interval.
    void skip(TscTime now) noexcept;
    // The time of the next look() or packet, at the latest.
    [[nodiscard]] TscTime wakes_at() const noexcept;

    [[nodiscard]] const Terms& terms() const noexcept { return terms_; }
    [[nodiscard]] const Status& status() const noexcept { return status_; }
    // Before jitter, in microseconds.
    [[nodiscard]] uint64_t transmit_interval_us() const noexcept;
    // 0: unknown, nothing has been received.
    [[nodiscard]] uint64_t detection_time_us() const noexcept;

 private:
    static constexpr TscTime kNever{~uint64_t{0}};

    [[nodiscard]] TscTicks ticks(uint64_t us) const noexcept;
    [[nodiscard]] uint32_t desired_min_tx_us() const noexcept;
    [[nodiscard]] bool sends() const noexcept;
    void enter(State state, Diagnostic diagnostic, TscTime now) noexcept;
    void forget_peer() noexcept;
    void begin_poll() noexcept;
    void end_poll() noexcept;
    void schedule(TscTime since) noexcept;

    Terms terms_;
    Status status_;
    TscRate rate_;
    uint64_t random_ = 1;
    bool polls_ = false;          // a poll sequence is under way
    bool owes_final_ = false;     // the peer's poll is not answered yet
    uint32_t applied_tx_us_ = 0;  // the interval by which this end sends until a poll sequence has ended
    uint32_t applied_rx_us_ = 0;  // the same of the interval that this end requires
    TscTime sent_at_{};
    uint64_t scheduled_us_ = 0;  // the interval by which due_at_ was computed
    TscTime due_at_ = kNever;
    TscTime detects_at_ = kNever;
};

}  // namespace penstock::bfd
