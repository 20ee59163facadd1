// SPDX-License-Identifier: Apache-2.0
#include "control/bfd/frr_link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::bfd {
namespace {

// bfdd reads at once. One that reads nothing for so long is stuck.
constexpr size_t kUnsentMax = 64 * 1024;

Result<Descriptor> open_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return fail(Errc::InvalidArgument, path + " is too long for a socket");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return fail(Errc::Unavailable, path + ": " + std::strerror(errno));
    }
    return socket;
}

uint64_t wall_us() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
}

}  // namespace

FrrLink::FrrLink(Options options) : options_(std::move(options)), fault_("not connected yet") {
    if (options_.former) {
        const auto now = Clock::now();
        orders_ = book_.resume(options_.former->sessions, now);
        if (options_.former->socket.is_open()) {
            socket_ = std::move(options_.former->socket);
            reader_ = FrrReader(options_.former->version);
            fault_.clear();
            was_connected_ = true;
        } else {
            book_.orphan_all();
            orphans_end_at_ = now + kOrphansFor;
        }
    }
    give_orders();  // before the workers run
    thread_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
}

FrrLink::~FrrLink() = default;

FrrLink::Handed FrrLink::hand_over() {
    thread_.request_stop();
    thread_.join();
    take_changes(Clock::now());
    // Part of a message cannot be handed over. bfdd writes whole messages, so there is none in practice.
    return {.socket = unsent_.empty() && reader_.is_empty() ? std::move(socket_) : Descriptor(),
            .version = reader_.version(),
            .sessions = book_.kept()};
}

void FrrLink::run(const std::stop_token& stopped) {
    while (!stopped.stop_requested()) {
        round(Clock::now());
        rounds_.fetch_add(1, std::memory_order_relaxed);
        pollfd socket{.fd = socket_.get(),
                      .events = static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT)),
                      .revents = 0};
        ::poll(&socket, 1, static_cast<int>(kRound.count()));  // a negative descriptor is ignored
    }
}

void FrrLink::round(Clock::time_point now) {
    options_.engine->withhold(!options_.forwards());
    if (!socket_.is_open() && now >= connect_at_) {
        connect(now);
    }
    if (socket_.is_open()) {
        read(now);
    }
    take_changes(now);
    if (orphans_end_at_ && now >= *orphans_end_at_) {
        orphans_end_at_.reset();
        const std::scoped_lock lock(mutex_);
        auto ended = book_.end_orphans();
        if (!ended.empty()) {
            log::get("control").warn("BFD: {} sessions end: bfdd has not requested them for {} s",
                                     ended.size(), kOrphansFor.count());
        }
        std::ranges::move(ended, std::back_inserter(orders_));
    }
    give_orders();
    if (socket_.is_open()) {
        write(now);
    }
}

void FrrLink::connect(Clock::time_point now) {
    connect_at_ = now + kRetry;
    auto opened = open_socket(options_.path);
    const std::scoped_lock lock(mutex_);
    if (!opened) {
        if (fault_ != opened.error().what) {
            fault_ = opened.error().what;
            log::get("control").warn("BFD: no connection to bfdd, next attempt every {} s: {}",
                                     kRetry.count(), fault_);
        }
        return;
    }
    socket_ = std::move(*opened);
    reader_ = FrrReader();
    unsent_.clear();
    fault_.clear();
    if (was_connected_) {
        orphans_end_at_ = now + kOrphansFor;  // it requests its sessions now
    }
    was_connected_ = true;
    log::get("control").info("BFD: connected to bfdd at {}", options_.path);
}

void FrrLink::disconnect(const std::string& why, Clock::time_point now) {
    socket_ = Descriptor();
    connect_at_ = now + kRetry;
    const std::scoped_lock lock(mutex_);
    fault_ = why;
    book_.orphan_all();
    orphans_end_at_ = now + kOrphansFor;
    log::get("control").warn("BFD: the connection to bfdd has ended: {}; its sessions continue for {} s", why,
                             kOrphansFor.count());
}

void FrrLink::read(Clock::time_point now) {
    std::array<uint8_t, 4'096> bytes;
    for (;;) {
        const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
        if (count == 0) {
            return disconnect("bfdd has closed it", now);
        }
        if (count < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                disconnect(std::strerror(errno), now);
            }
            return;
        }
        reader_.append(ByteView(bytes).first(static_cast<size_t>(count)));
        for (;;) {
            const auto message = reader_.next();
            if (!message) {
                return disconnect(message.error().what, now);
            }
            if (!*message) {
                break;
            }
            handle(**message, now);
        }
    }
}

void FrrLink::handle(const FrrMessage& message, Clock::time_point now) {
    if (const auto* request = std::get_if<SessionRequest>(&message)) {
        const auto twins = options_.twins();
        const std::scoped_lock lock(mutex_);
        std::ranges::move(book_.request(*request, twins, now), std::back_inserter(orders_));
        if (const auto session = book_.session(request->discriminator);
            session && !session->refusal.empty()) {
            log::get("control").warn("BFD: the session with {} stays down: {}", session->peer.to_string(),
                                     session->refusal);
        }
    } else if (const auto* echo = std::get_if<EchoRequest>(&message)) {
        send(echo_reply(reader_.version(), *echo, wall_us()));
    } else if (const auto* asked = std::get_if<CountersRequest>(&message)) {
        PacketCounts counts;
        if (const Counts* const of = options_.engine->counts(asked->discriminator); of != nullptr) {
            counts = {.received_bytes = of->received_bytes.read(),
                      .received = of->received.read(),
                      .sent_bytes = of->sent_bytes.read(),
                      .sent = of->sent.read()};
        }
        send(counters(reader_.version(), *asked, counts));
    }
}

void FrrLink::log_change(const SessionView& before, const SessionView& after) const {
    if (before.status.state == after.status.state) {
        return;
    }
    const std::string peer =
        after.peer.to_string() + (after.twin.empty() ? " (multihop)" : " on " + after.twin);
    const std::string_view why = text_of(after.status.diagnostic);
    if (before.status.state == State::Up) {
        log::get("control").warn("BFD: the session with {} is {}{}{}", peer, text_of(after.status.state),
                                 why.empty() ? "" : ": ", why);
    } else if (after.status.state == State::Up) {
        log::get("control").info("BFD: the session with {} is up", peer);
    }
}

void FrrLink::take_changes(Clock::time_point now) {
    while (const auto change = options_.engine->take_change()) {
        const std::scoped_lock lock(mutex_);
        const auto before = book_.session(change->discriminator);
        if (!before || !book_.change(*change, now)) {
            continue;
        }
        log_change(*before, *book_.session(change->discriminator));
        if (socket_.is_open()) {
            send(state_change(reader_.version(), change->discriminator, change->status));
        }
    }
}

void FrrLink::give_orders() {
    size_t given = 0;
    while (given < orders_.size() && options_.engine->order(orders_[given])) {
        ++given;
    }
    orders_.erase(orders_.begin(), orders_.begin() + static_cast<ptrdiff_t>(given));
}

void FrrLink::send(const std::vector<uint8_t>& message) {
    unsent_.insert(unsent_.end(), message.begin(), message.end());
}

void FrrLink::write(Clock::time_point now) {
    while (!unsent_.empty()) {
        const ssize_t count = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
        if (count < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                disconnect(std::strerror(errno), now);
            } else if (unsent_.size() > kUnsentMax) {
                disconnect("bfdd does not read", now);
            }
            return;
        }
        unsent_.erase(unsent_.begin(), unsent_.begin() + count);
    }
}

FrrLink::View FrrLink::view() const {
    View view{
        .path = options_.path, .fault = {}, .is_withheld = options_.engine->is_withheld(), .sessions = {}};
    const std::scoped_lock lock(mutex_);
    view.fault = fault_;
    for (const SessionView& each : book_.sessions()) {
        Session session{each};
        if (const Counts* const counts = options_.engine->counts(each.discriminator); counts != nullptr) {
            session.received = counts->received.read();
            session.sent = counts->sent.read();
            session.withheld = counts->withheld.read();
            session.unsendable = counts->unsendable.read();
        }
        view.sessions.push_back(std::move(session));
    }
    return view;
}

}  // namespace penstock::bfd
