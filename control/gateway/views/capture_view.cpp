// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/capture_view.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "control/gateway/program/version.hpp"
#include "control/pcapng/comment.hpp"
#include "control/pcapng/pcapng.hpp"
#include "dataplane/worker/capture.hpp"

namespace penstock::gateway {
namespace {

using std::chrono::steady_clock;

constexpr const char* kPointNames[capture::kPoints] = {"rx", "tx", "drop", "host"};

// Translates readings of the TSC to nanoseconds since 1970.
class WallClock {
 public:
    [[nodiscard]] uint64_t at(uint64_t ticks) const {
        // Before the start of the capture at most by a worker's round.
        const auto since = static_cast<int64_t>(ticks - ticks_);
        const auto ns = static_cast<long double>(since) * 1e9L / static_cast<long double>(hz_);
        return static_cast<uint64_t>(ns_ + static_cast<int64_t>(ns));
    }
    [[nodiscard]] uint64_t now() const { return at(rte_get_tsc_cycles()); }

 private:
    uint64_t ticks_ = rte_get_tsc_cycles();
    uint64_t hz_ = rte_get_tsc_hz();
    int64_t ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
};

pipeline::TapOptions tap_options(const rpc::CaptureOrder& order,
                                 std::optional<std::vector<ServiceId>> services) {
    using Form = pipeline::TapOptions::Form;
    return {.filter = order.filter,
            .form = order.form == v1::CaptureRequest::FORM_EITHER       ? Form::Either
                    : order.form == v1::CaptureRequest::FORM_TRANSLATED ? Form::Translated
                                                                        : Form::Received,
            .services = std::move(services),
            .client = order.client,
            .points = order.points,
            .snap_bytes = order.snap_bytes};
}

}  // namespace

// One capture: its records, as blocks of a file.
class Captures::Session {
 public:
    Session(const Captures& captures, const rpc::CaptureOrder& order)
        : captures_(captures),
          order_(order),
          file_(std::string("penstockd ") + kVersion),
          names_{.service = [this](ServiceId id) { return name_of(id); },
                 .backend = [this](BackendId id) { return name_of(id); },
                 .port = [this](NicPortId id) { return twin_of(id); }} {}

    void add(const capture::Record& record, std::span<const uint8_t> frame) {
        ++records_;
        ++counts_[interface_of(record.point, record.port)];
        const capture::Direction direction = record.point == capture::Point::Rx ? capture::Direction::Inbound
                                             : record.point == capture::Point::Tx
                                                 ? capture::Direction::Outbound
                                                 : capture::Direction::Unknown;
        const std::string comment = capture::comment_of(record, names_);
        file_.add_packet({.interface = interface_of(record.point, record.port),
                          .time_ns = clock_.at(record.ticks),
                          .bytes = frame,
                          .wire_bytes = record.wire_bytes,
                          .direction = direction,
                          .lost_before = record.lost_before,
                          .comment = comment});
    }
    // The number of records that may still be added.
    [[nodiscard]] uint64_t room() const {
        return order_.records_max == 0 ? UINT64_MAX : order_.records_max - records_;
    }
    [[nodiscard]] size_t pending_bytes() const { return file_.size(); }
    [[nodiscard]] uint64_t records() const { return records_; }
    // The blocks that were added since the last call.
    v1::CaptureChunk take(uint64_t lost, const std::string& ended = "") {
        if (!ended.empty()) {
            const std::string comment = "penstockd: " + ended + "; " + std::to_string(lost) +
                                        " records lost on all interfaces together";
            for (const auto& [interface, count] : counts_) {
                file_.add_statistics({.interface = interface,
                                      .start_ns = started_ns_,
                                      .end_ns = clock_.now(),
                                      .received = count,
                                      .lost = 0,
                                      .comment = comment});
            }
        }
        v1::CaptureChunk chunk;
        chunk.set_pcapng(file_.take());
        chunk.set_records(records_);
        chunk.set_lost(lost);
        chunk.set_ended(ended);
        return chunk;
    }

 private:
    // One interface for each point of each port; described when it is first used.
    uint32_t interface_of(capture::Point point, NicPortId port) {
        const auto key = std::pair(static_cast<uint8_t>(point), port.value);
        const auto [place, is_new] = interfaces_.try_emplace(key, 0);
        if (is_new) {
            const std::string twin = twin_of(port);
            const std::string name =
                (twin.empty() ? "" : twin + ":") + kPointNames[static_cast<size_t>(point)];
            place->second = file_.add_interface(name, description_of(point), order_.snap_bytes);
        }
        return place->second;
    }
    static const char* description_of(capture::Point point) {
        switch (point) {
            case capture::Point::Rx:
                return "as received by the port";
            case capture::Point::Tx:
                return "as sent by the port";
            case capture::Point::Drop:
                return "as dropped; the port is that of arrival";
            case capture::Point::Host:
                return "from Linux or for Linux, through the twin of the port";
        }
        return "";
    }
    [[nodiscard]] std::string twin_of(NicPortId port) const {
        return port.value < captures_.ports_.size() ? captures_.ports_[port.value]->options().twin_name : "";
    }
    // Names are read once: an id is used for another object only when all ids have been used.
    const std::string& name_of(ServiceId id) {
        const auto [place, is_new] = services_.try_emplace(id.value);
        if (is_new) {
            place->second = captures_.reconciler_.read([id](const ReconcilerState& state) {
                const model::ServiceKey* key = state.compiler.ids().services.key_of(id);
                return key == nullptr ? std::string()
                                      : key->namespace_name + "/" + key->name +
                                            (key->port_name.empty() ? "" : ":" + key->port_name);
            });
        }
        return place->second;
    }
    const std::string& name_of(BackendId id) {
        const auto [place, is_new] = backends_.try_emplace(id.value);
        if (is_new) {
            place->second = captures_.reconciler_.read([id](const ReconcilerState& state) {
                const BackendKey* key = state.compiler.ids().backends.key_of(id);
                return key == nullptr ? std::string() : SocketAddress{key->address, key->port}.to_string();
            });
        }
        return place->second;
    }

    const Captures& captures_;
    const rpc::CaptureOrder& order_;
    const WallClock clock_;
    const uint64_t started_ns_ = clock_.now();
    capture::Pcapng file_;
    const capture::Names names_;
    uint64_t records_ = 0;
    std::map<std::pair<uint8_t, uint8_t>, uint32_t> interfaces_;  // number by point and port
    std::map<uint32_t, uint64_t> counts_;                         // records by interface
    std::unordered_map<uint32_t, std::string> services_, backends_;
};

Result<std::vector<ServiceId>> Captures::ids_of(const std::string& namespace_name,
                                                const std::string& name) const {
    const auto compiled =
        reconciler_.read([](const ReconcilerState& state) { return state.compiler.compiled(); });
    std::vector<ServiceId> ids;
    for (const auto& [key, programmed] : compiled->services) {
        if (key.namespace_name == namespace_name && key.name == name) {
            ids.push_back(programmed.service->id);
        }
    }
    if (ids.empty()) {
        return fail(Errc::NotFound, "there is no service " + namespace_name + "/" + name);
    }
    return ids;
}

Status Captures::run(const rpc::CaptureOrder& order, rpc::CaptureClient& client) {
    std::optional<std::vector<ServiceId>> services;
    if (!order.name.empty()) {
        PENSTOCK_TRY(services, ids_of(order.namespace_name, order.name));
    }
    if (running_.exchange(true)) {
        return fail(Errc::AlreadyExists, "another capture is running; only one runs at a time");
    }
    struct Ends {
        std::atomic<bool>& running;
        ~Ends() { running = false; }
    } const ends{running_};
    // Declared in this order: the session outlives the capture, which calls it.
    Session session(*this, order);
    PENSTOCK_TRY(const auto capture, worker::Capture::start(workers_, tap_options(order, services)));
    begun_.fetch_add(1, std::memory_order_relaxed);

    constexpr uint32_t kBatch = 512;
    constexpr size_t kChunkBytes = size_t{256} << 10;
    constexpr std::chrono::milliseconds kPoll{2};
    const uint64_t lost_before = lost_.load(std::memory_order_relaxed);
    const uint64_t records_before = records_.load(std::memory_order_relaxed);
    const auto read = [&] {
        const auto most = static_cast<uint32_t>(std::min<uint64_t>(kBatch, session.room()));
        const uint32_t count =
            capture->read(most, [&](const capture::Record& record, std::span<const uint8_t> frame) {
                session.add(record, frame);
            });
        records_.store(records_before + session.records(), std::memory_order_relaxed);
        lost_.store(lost_before + capture->lost(), std::memory_order_relaxed);
        return count;
    };
    // The first part goes out at once: the client knows then that packets are recorded.
    bool is_connected = client.send(session.take(0));
    const auto until = steady_clock::now() + order.limit;
    std::string ended;
    while (ended.empty() && is_connected) {
        const uint32_t count = read();
        if (session.pending_bytes() > 0 && (count < kBatch || session.pending_bytes() >= kChunkBytes)) {
            is_connected = client.send(session.take(capture->lost()));
        }
        if (session.room() == 0) {
            ended = "the number of records is reached";
        } else if (steady_clock::now() >= until) {
            ended = "the time limit is reached";
        } else if (client.is_gone()) {
            is_connected = false;
        } else if (count == 0) {
            std::this_thread::sleep_for(kPoll);
        }
    }
    capture->stop();
    while (is_connected && session.room() > 0 && read() > 0) {
        if (session.pending_bytes() >= kChunkBytes) {
            is_connected = client.send(session.take(capture->lost()));
        }
    }
    if (is_connected) {
        client.send(session.take(capture->lost(), ended));
    }
    return {};
}

}  // namespace penstock::gateway
