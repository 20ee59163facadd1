// Ending flows that the control thread wants ended (conn/flow_order.hpp; docs/adr/0017). A worker works on the snapshot's orders a slice a
// round: what knows no connection is erased, so that its next packet is a new flow's; a TCP connection is reset on both sides.
//
// The gateway does not track sequence numbers, so it has the stacks tell them: a probe, an ACK that is out of place, is answered by an ACK
// that says where the stack is (RFC 9293, 3.10.7.4), and each segment of a connection in state Resetting, that answer or any other, becomes
// the RST that its sender must accept, and one for the other side. Of an SCTP association it does know the verification tags: an ABORT to
// each side ends it, and whoever goes on sending is answered by another (associations.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/pipeline/answers/reject_limiter.hpp"

namespace penstock::pipeline {

struct Burst;
struct WorkerContext;

// How far one worker has come. Written by the worker; done() is for any thread.
class FlowOrderWork {
 public:
    explicit FlowOrderWork(TscRate rate) noexcept
        : probing(limits::kResetFlowsPerSecond, limits::kResetFlowsBurst, rate),
          answering(limits::kResetAnswersPerSecond, limits::kResetAnswersBurst, rate) {}

    // Number of the last order finished. Acquires what finish() released: whoever reads it finds the flows' counters moved.
    [[nodiscard]] uint64_t done() const noexcept { return done_.load(std::memory_order_acquire); }
    void finish(uint64_t number) noexcept {
        done_.store(number, std::memory_order_release);
        is_walking = false;
    }

    bool is_walking = false;  // the order after done() has begun
    bool is_waiting = true;   // something may be left to do; where false, nothing is until the next snapshot
    RejectLimiter probing, answering;

 private:
    std::atomic<uint64_t> done_{0};
};

// One slice. Returns how many orders and connections it has looked at; 0: nothing is due, or the limit of resets is reached.
uint32_t work_off_flow_orders(WorkerContext& ctx) noexcept;

// Packet i belongs to a connection in state Resetting and is no RST: it becomes the RST of its sender, and the other side gets one too.
void reset_both_sides(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// For the sweep, which meets a connection in state Resetting or Aborting some seconds after its order: probes or aborts it once more, in
// case the first segment was lost, could not leave, or was taken for the duplicate of a real ACK.
void end_again(WorkerContext& ctx, ConnectionIndex index) noexcept;

}  // namespace penstock::pipeline
