// All TAP I/O of the process, on one thread: punted frames from the workers' rings to Linux, Linux's frames to the rings toward the
// workers. Workers make no system call; the price is that this thread has to look at their rings, which it does in ever longer steps the
// longer nothing comes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/punt_class.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/verdict.hpp"
#include "drivers/host/tap_twin.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace penstock::drivers {

// The workers' side, as TwinIo needs it (worker::WorkerSet has the same functions; this room must not know it).
class TwinIoPorts {
 public:
    virtual ~TwinIoPorts() = default;
    // Packets of one class for Linux that arrived on `port`; the caller owns them. How many were written to `out`.
    virtual size_t take_punted(NicPortId port, PuntClass punt_class, std::span<rte_mbuf*> out) = 0;
    // Whole frames from Linux, to leave through `port`. How many were taken; the rest stays the caller's.
    virtual size_t send_from_host(NicPortId port, std::span<rte_mbuf*> frames) = 0;
    // Frames that ended here: PuntFailed, HostFrameInvalid, or FromHostRingFull.
    virtual void count_host_drop(DropReason reason, uint64_t packets) = 0;
};

// Of one twin, since start. Written by the I/O thread, readable by any.
struct TwinCounters {
    uint64_t punted = 0;              // given to Linux
    uint64_t punt_failed = 0;         // Linux refused
    uint64_t from_host = 0;           // taken over by the workers' side
    uint64_t from_host_dropped = 0;   // the ring toward the worker was full
    uint64_t host_frame_invalid = 0;  // shorter than an Ethernet header, or longer than the MTU allows
    uint64_t no_buffer = 0;           // times the pool was empty: frames wait in the TAP's queue
    uint64_t dropped_by_linux = 0;    // of frames that waited there: the queue was full
};

class TwinIo {
 public:
    struct Twin {
        NicPortId port;
        TapTwin* twin = nullptr;  // outlives the TwinIo
        uint16_t mtu = 1500;
    };
    // `ports` and `pool` outlive it too.
    static Result<std::unique_ptr<TwinIo>> open(std::vector<Twin> twins, TwinIoPorts& ports,
                                                rte_mempool* pool);
    ~TwinIo();
    TwinIo(const TwinIo&) = delete;
    TwinIo& operator=(const TwinIo&) = delete;

    // A descriptor of somebody else (netlink, an eventfd) whose readiness ends the sleep in poll_once(); its owner reads it.
    Status also_wake_on(int fd);

    // Moves what is there, a bounded number of frames in each direction, then sleeps until Linux sends something, at most `timeout_ms`.
    // A pass serves the classes in the order of PuntClass, and each has a share of its own: what is in one ring delays the others' frames
    // by its share at most. While frames flow it does not sleep; with nothing to do its sleep grows from 0.1 to 2 ms, which bounds what it
    // adds to a punted packet's latency. True where anything moved.
    bool poll_once(int timeout_ms);

    [[nodiscard]] TwinCounters counters(NicPortId port) const noexcept;

 private:
    struct Impl;
    explicit TwinIo(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::drivers
