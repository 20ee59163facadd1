// SPDX-License-Identifier: Apache-2.0
// The state of a loop and of its servers, for server.cpp and session.cpp. Their code runs on the loop's
// thread unless noted otherwise.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "control/http/admission.hpp"
#include "control/http/server.hpp"

namespace penstock::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class Session;

struct Loop::Impl {
    explicit Impl(AdmissionLimits limits)
        : work(io.get_executor()), admission(limits), thread([this] { io.run(); }) {}

    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work;
    Admission admission;
    ConnectionId last_id = 0;
    std::map<ConnectionId, Session*> sessions;  // open sessions
    std::set<ConnectionId> heavy;               // sessions that are receiving a heavy page
    std::thread thread;
};

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
    struct Listener {
        tcp::acceptor acceptor;
        asio::steady_timer pause;
    };
    struct Waiting {
        std::shared_ptr<Session> session;
        bool with_gzip = false;
    };
    // Requests for one heavy page. Requests that arrive while the page is being made wait for the next one,
    // so no client gets a page older than its request.
    struct HeavyPage {
        std::vector<Waiting> next;
        bool is_being_made = false;
    };

    Impl(Loop::Impl& loop_of, Routes routes_of) : loop(loop_of), routes(std::move(routes_of)) {}
    Status listen(const std::string& address, bool may_be_absent);
    void accept(Listener& listener);
    void take(tcp::socket socket);
    void serve(const std::shared_ptr<Session>& session, bool is_get_or_head, std::string_view target,
               bool with_gzip);
    void make_heavy(const std::string& path, const Route& route);
    void close();

    Loop::Impl& loop;
    const Routes routes;
    std::deque<Listener> listeners;
    std::map<ConnectionId, Session*> sessions;
    std::map<std::string, HeavyPage> heavy_pages;
    std::optional<asio::thread_pool> heavy_thread;
    uint16_t port = 0;
    bool is_closed = false;
};

}  // namespace penstock::http
