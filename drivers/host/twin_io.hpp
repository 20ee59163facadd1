// SPDX-License-Identifier: Apache-2.0
// All TAP I/O of the process, on one thread: punted frames from the workers' rings to Linux, and Linux's
// frames to the rings of the workers. Workers make no system call. In return, this thread polls their rings,
// at growing intervals while it is idle.
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

// The workers' side, as TwinIo needs it. worker::WorkerSet has the same functions; this room must not depend
// on it.
class TwinIoPorts {
 public:
    virtual ~TwinIoPorts() = default;
    // Takes packets of one class for Linux that arrived on `port`; the caller owns them. Returns the number
    // written to `out`.
    virtual size_t take_punted(NicPortId port, PuntClass punt_class, std::span<rte_mbuf*> out) = 0;
    // Passes whole frames from Linux that leave through `port`. Returns the number taken; the caller keeps
    // the rest.
    virtual size_t send_from_host(NicPortId port, std::span<rte_mbuf*> frames) = 0;
    // Frames of the port's twin are dropped: PuntFailed, HostFrameInvalid, or FromHostRingFull. The caller
    // frees them afterwards.
    virtual void frames_dropped(NicPortId port, DropReason reason, std::span<rte_mbuf* const> frames) = 0;
};

// Counters of one twin, since start. Written by the I/O thread, readable by any thread.
struct TwinCounters {
    uint64_t punted = 0;              // passed to Linux
    uint64_t punt_failed = 0;         // Linux refused
    uint64_t from_host = 0;           // passed to the workers
    uint64_t from_host_dropped = 0;   // the ring toward the worker was full
    uint64_t host_frame_invalid = 0;  // shorter than an Ethernet header, or longer than the MTU allows
    uint64_t no_buffer = 0;           // times the pool was empty: frames wait in the TAP's queue
    uint64_t dropped_by_linux = 0;    // of the waiting frames: the TAP's queue was full
};

class TwinIo {
 public:
    struct Twin {
        NicPortId port;
        TapTwin* twin = nullptr;  // outlives the TwinIo
        uint16_t mtu = 1500;
    };
    // `ports` and `pool` must outlive the TwinIo as well.
    static Result<std::unique_ptr<TwinIo>> open(std::vector<Twin> twins, TwinIoPorts& ports,
                                                rte_mempool* pool);
    ~TwinIo();
    TwinIo(const TwinIo&) = delete;
    TwinIo& operator=(const TwinIo&) = delete;

    // A file descriptor of another component (netlink, an eventfd) that ends the sleep in poll_once() when it
    // becomes readable, once. Its owner reads it.
    Status also_wake_on(int fd);

    // Moves pending frames, a bounded number in each direction, then sleeps until Linux sends something, at
    // most `timeout_ms`. A pass serves the classes in the order of PuntClass. Each class has its own share,
    // so the frames of one ring delay the others' frames by that share at most. It does not sleep while
    // frames flow. When idle, its sleep grows from 0.1 to 2 ms, which bounds the latency that it adds to a
    // punted packet. True if any frame moved.
    bool poll_once(int timeout_ms);

    [[nodiscard]] TwinCounters counters(NicPortId port) const noexcept;

 private:
    struct Impl;
    explicit TwinIo(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::drivers
