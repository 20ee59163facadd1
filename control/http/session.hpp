// SPDX-License-Identifier: Apache-2.0
// One connection of a server.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "control/http/answer.hpp"
#include "control/http/server_impl.hpp"

namespace penstock::http {

namespace beast = boost::beast;

// One connection: reads a request, sends the response, and waits for the peer to close. Kept alive by its
// pending handler.
class Session : public std::enable_shared_from_this<Session> {
 public:
    Session(tcp::socket socket, ConnectionId id, Loop::Impl& loop, std::shared_ptr<Server::Impl> server)
        : id_(id), loop_(loop), server_(std::move(server)), socket_(std::move(socket)), deadline_(loop.io) {
        parser_.header_limit(kRequestBytesMax);
        // Bodies are not read; without a limit all are refused (Boost 1.74).
        parser_.body_limit(std::numeric_limits<uint64_t>::max());
    }

    void read();
    void answer(std::shared_ptr<const Answer> answer, bool is_heavy);
    // Idempotent.
    void close();

 private:
    void close_at(std::chrono::milliseconds from_now);
    void heed(error_code error);
    void finish();
    void discard();

    const ConnectionId id_;
    Loop::Impl& loop_;
    const std::shared_ptr<Server::Impl> server_;
    tcp::socket socket_;
    asio::steady_timer deadline_;
    beast::flat_buffer buffer_{kRequestBytesMax};
    beast::http::request_parser<beast::http::buffer_body> parser_;
    std::shared_ptr<const Answer> answer_;
    std::array<char, 1'024> discarded_{};
    size_t discarded_bytes_ = 0;
    bool is_head_ = false;
    bool is_closed_ = false;
};

}  // namespace penstock::http
