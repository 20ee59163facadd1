// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/twin_io.hpp"

#include <rte_mbuf.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "dataplane/base/limits.hpp"

namespace penstock::drivers {
namespace {

// Limits of one pass for one twin, in bursts: a busy twin must not delay the others for long. 128 writes take
// about 0.2 ms.
constexpr size_t kBurst = limits::kBurstMax;
constexpr int kBurstsFromHost = 4;
// To Linux, by PuntClass.
constexpr std::array<int, kPuntClasses> kBurstsToHost{2, 1, 1};

// A worker punts a frame into a ring without a wake-up, so the sleep bounds the frame's delay. The sleep
// doubles from the first to the last value while no frame moves. 500 polls a second take less than 1 % of a
// CPU.
constexpr std::chrono::microseconds kSleepFirst{100};
constexpr std::chrono::microseconds kSleepMax{2'000};

constexpr uint32_t kEthernetHeader = 14;
constexpr uint32_t kVlanTags = 8;  // Linux may stack VLANs on the twin

// Mbufs that one packet may consist of. A jumbo frame in the smallest buffers needs 5.
constexpr size_t kSegmentsMax = 16;

constexpr int kEventsMax = 32;
constexpr uint64_t kForeignEvent = ~uint64_t{0};

}  // namespace

struct TwinIo::Impl {
    struct Line {
        Twin twin;
        std::atomic<uint64_t> punted{0}, punt_failed{0}, from_host{0}, from_host_dropped{0},
            host_frame_invalid{0}, no_buffer{0};
    };
    std::vector<std::unique_ptr<Line>> lines;
    TwinIoPorts* ports = nullptr;
    rte_mempool* pool = nullptr;
    int epoll = -1;
    std::chrono::microseconds sleep = kSleepFirst;

    ~Impl() {
        if (epoll >= 0) {
            close(epoll);
        }
    }
    bool punt(Line& line, PuntClass punt_class);
    bool fetch(Line& line);
    // Reads a frame from Linux into an mbuf of the pool. Null if there is no frame, or no buffer for it.
    rte_mbuf* read_frame(Line& line);
};

namespace {

// The I/O thread is the only writer, so a plain load and store are sufficient.
void add(std::atomic<uint64_t>& counter, uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

bool write_packet(TapTwin& twin, rte_mbuf* packet) {
    std::array<iovec, kSegmentsMax> pieces;
    size_t count = 0;
    for (rte_mbuf* segment = packet; segment != nullptr; segment = segment->next) {
        if (count == pieces.size()) {
            return false;
        }
        pieces[count++] = {rte_pktmbuf_mtod(segment, void*), rte_pktmbuf_data_len(segment)};
    }
    return twin.write({pieces.data(), count});
}

}  // namespace

// Workers' ring -> Linux.
bool TwinIo::Impl::punt(Line& line, PuntClass punt_class) {
    bool moved = false;
    for (int burst = 0; burst < kBurstsToHost[static_cast<size_t>(punt_class)]; ++burst) {
        std::array<rte_mbuf*, kBurst> packets;
        const size_t count = ports->take_punted(line.twin.port, punt_class, packets);
        std::array<rte_mbuf*, kBurst> not_written;
        size_t refused = 0;
        for (size_t i = 0; i < count; ++i) {
            if (!write_packet(*line.twin.twin, packets[i])) {
                not_written[refused++] = packets[i];
            }
        }
        add(line.punted, count - refused);
        if (refused > 0) {
            add(line.punt_failed, refused);
            ports->frames_dropped(line.twin.port, DropReason::PuntFailed, {not_written.data(), refused});
        }
        rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(count));
        moved = moved || count > 0;
        if (count < packets.size()) {
            break;
        }
    }
    return moved;
}

rte_mbuf* TwinIo::Impl::read_frame(Line& line) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool);
    if (frame == nullptr) {
        add(line.no_buffer, 1);
        return nullptr;
    }
    const ssize_t length =
        line.twin.twin->read({rte_pktmbuf_mtod(frame, uint8_t*), rte_pktmbuf_tailroom(frame)});
    if (length <= 0) {
        rte_pktmbuf_free(frame);
        return nullptr;
    }
    frame->data_len = static_cast<uint16_t>(length);
    frame->pkt_len = static_cast<uint32_t>(length);
    return frame;
}

// Linux -> workers' ring.
bool TwinIo::Impl::fetch(Line& line) {
    const uint32_t length_max = uint32_t{line.twin.mtu} + kEthernetHeader + kVlanTags;
    bool moved = false;
    bool more = true;
    for (int burst = 0; burst < kBurstsFromHost && more; ++burst) {
        std::array<rte_mbuf*, kBurst> frames;
        size_t count = 0;
        while (count < frames.size()) {
            rte_mbuf* const frame = read_frame(line);
            if (frame == nullptr) {
                more = false;
                break;
            }
            moved = true;
            if (frame->pkt_len < kEthernetHeader || frame->pkt_len > length_max) {
                add(line.host_frame_invalid, 1);
                ports->frames_dropped(line.twin.port, DropReason::HostFrameInvalid, {&frame, 1});
                rte_pktmbuf_free(frame);
                continue;
            }
            frames[count++] = frame;
        }
        if (count == 0) {
            break;
        }
        const size_t taken = ports->send_from_host(line.twin.port, {frames.data(), count});
        add(line.from_host, taken);
        if (taken < count) {
            const std::span dropped(frames.data() + taken, count - taken);
            add(line.from_host_dropped, dropped.size());
            ports->frames_dropped(line.twin.port, DropReason::FromHostRingFull, dropped);
            rte_pktmbuf_free_bulk(dropped.data(), static_cast<unsigned>(dropped.size()));
        }
    }
    return moved;
}

Result<std::unique_ptr<TwinIo>> TwinIo::open(std::vector<Twin> twins, TwinIoPorts& ports, rte_mempool* pool) {
    auto impl = std::make_unique<Impl>();
    impl->ports = &ports;
    impl->pool = pool;
    impl->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (impl->epoll < 0) {
        return fail(Errc::Unavailable, std::string("twin I/O: epoll: ") + std::strerror(errno));
    }
    for (const Twin& twin : twins) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = impl->lines.size();
        if (epoll_ctl(impl->epoll, EPOLL_CTL_ADD, twin.twin->fd(), &event) != 0) {
            return fail(Errc::Unavailable, "twin " + twin.twin->name() + ": epoll: " + std::strerror(errno));
        }
        impl->lines.push_back(std::make_unique<Impl::Line>());
        impl->lines.back()->twin = twin;
    }
    return std::unique_ptr<TwinIo>(new TwinIo(std::move(impl)));
}

TwinIo::TwinIo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TwinIo::~TwinIo() = default;

Status TwinIo::also_wake_on(int fd) {
    epoll_event event{};
    // Once for each event: its owner may read it later, and the thread must not spin meanwhile.
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = kForeignEvent;
    if (epoll_ctl(impl_->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        return fail(Errc::Unavailable, std::string("twin I/O: epoll: ") + std::strerror(errno));
    }
    return {};
}

bool TwinIo::poll_once(int timeout_ms) {
    bool moved = false;
    // Serves one class of all twins before the next class, so that one twin's flood does not delay the
    // others' control packets.
    for (const PuntClass punt_class : {PuntClass::Link, PuntClass::Routing, PuntClass::Other}) {
        for (const auto& line : impl_->lines) {
            moved = impl_->punt(*line, punt_class) || moved;
        }
    }
    const auto wait = moved ? std::chrono::nanoseconds::zero()
                            : std::chrono::nanoseconds(std::min<std::chrono::microseconds>(
                                  impl_->sleep, std::chrono::milliseconds(timeout_ms)));
    const timespec limit{0, static_cast<long>(wait.count())};
    std::array<epoll_event, kEventsMax> events;
    const int ready = epoll_pwait2(impl_->epoll, events.data(), kEventsMax, &limit, nullptr);
    for (int i = 0; i < ready; ++i) {
        const uint64_t which = events[static_cast<size_t>(i)].data.u64;
        if (which != kForeignEvent) {
            moved = impl_->fetch(*impl_->lines[which]) || moved;
        }
    }
    impl_->sleep = moved ? kSleepFirst : std::min(impl_->sleep * 2, kSleepMax);
    return moved;
}

TwinCounters TwinIo::counters(NicPortId port) const noexcept {
    for (const auto& line : impl_->lines) {
        if (line->twin.port == port) {
            return {.punted = line->punted.load(std::memory_order_relaxed),
                    .punt_failed = line->punt_failed.load(std::memory_order_relaxed),
                    .from_host = line->from_host.load(std::memory_order_relaxed),
                    .from_host_dropped = line->from_host_dropped.load(std::memory_order_relaxed),
                    .host_frame_invalid = line->host_frame_invalid.load(std::memory_order_relaxed),
                    .no_buffer = line->no_buffer.load(std::memory_order_relaxed),
                    .dropped_by_linux = line->twin.twin->dropped_by_linux()};
        }
    }
    return {};
}

}  // namespace penstock::drivers
