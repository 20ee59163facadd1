// SPDX-License-Identifier: Apache-2.0
#include "control/http/session.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

#include "control/http/gzip.hpp"

namespace penstock::http {
namespace {

// Of a request that was not read to its end, such as a body or a second, pipelined request.
constexpr size_t kDiscardedBytesMax = 65'536;

}  // namespace

void Session::close_at(std::chrono::milliseconds from_now) {
    deadline_.expires_after(from_now);  // cancels the previous wait
    deadline_.async_wait([self = shared_from_this()](error_code error) {
        // A wait that ended just before it was cancelled arrives without an error.
        if (!error && self->deadline_.expiry() <= asio::steady_timer::clock_type::now()) {
            self->close();
        }
    });
}

void Session::close() {
    if (std::exchange(is_closed_, true)) {
        return;
    }
    error_code ignored;
    deadline_.cancel(ignored);
    socket_.close(ignored);
    loop_.admission.remove(id_);
    loop_.sessions.erase(id_);
    loop_.heavy.erase(id_);
    server_->sessions.erase(id_);
}

void Session::read() {
    close_at(kRequestTimeout);
    beast::http::async_read_header(
        socket_, buffer_, parser_,
        [self = shared_from_this()](error_code error, size_t) { self->heed(error); });
}

void Session::heed(error_code error) {
    using HttpError = beast::http::error;
    if (is_closed_) {
        return;
    }
    const auto refuse = [this](int status, const char* why) {
        loop_.admission.set_silent(id_, false);
        answer(std::make_shared<const Answer>(answer_of({.status = status, .body = why}, false)), false);
    };
    if (error == HttpError::header_limit || error == HttpError::buffer_overflow) {
        refuse(431, "the request is too long\n");
    } else if (error == HttpError::end_of_stream || error == HttpError::partial_message) {
        close();  // the client closed the connection
    } else if (error && error.category() == make_error_code(HttpError::bad_method).category()) {
        refuse(400, "not an HTTP request\n");
    } else if (error) {
        close();
    } else {
        loop_.admission.set_silent(id_, false);
        const auto& request = parser_.get();
        const auto verb = request.method();
        is_head_ = verb == beast::http::verb::head;
        const auto coding = request[beast::http::field::accept_encoding];
        const auto target = request.target();
        server_->serve(shared_from_this(), is_head_ || verb == beast::http::verb::get,
                       {target.data(), target.size()}, accepts_gzip({coding.data(), coding.size()}));
    }
}

void Session::answer(std::shared_ptr<const Answer> answer, bool is_heavy) {
    if (is_closed_) {
        return;
    }
    answer_ = std::move(answer);
    if (is_heavy) {
        if (loop_.heavy.size() >= kHeavyAnswersMax) {
            loop_.sessions.at(*loop_.heavy.begin())->close();
        }
        loop_.heavy.insert(id_);
    }
    close_at(kAnswerTimeout);
    const std::array<asio::const_buffer, 2> buffers{
        asio::buffer(answer_->head), is_head_ ? asio::const_buffer() : asio::buffer(answer_->body)};
    asio::async_write(socket_, buffers, [self = shared_from_this()](error_code error, size_t) {
        if (error) {
            self->close();
        } else {
            self->finish();
        }
    });
}

void Session::finish() {
    if (is_closed_) {
        return;
    }
    answer_.reset();
    loop_.heavy.erase(id_);
    loop_.admission.set_silent(id_, true);
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    close_at(kCloseTimeout);
    discard();
}

void Session::discard() {
    socket_.async_read_some(asio::buffer(discarded_),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                                self->discarded_bytes_ += bytes;
                                if (error || self->discarded_bytes_ > kDiscardedBytesMax) {
                                    self->close();
                                } else {
                                    self->discard();
                                }
                            });
}

}  // namespace penstock::http
