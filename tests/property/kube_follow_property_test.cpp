// SPDX-License-Identifier: Apache-2.0
// A reflector, compared with a model of an API server. Whatever happens to the objects and to the connection,
// the store finally equals the server's contents, and at any time readers only see objects that the server
// has sent.
//
// The server is a history: each change has a number, and the version of the collection is the number of the
// last change. Versions are sent as text without an order ("v" and a scrambled number), histories are
// compacted, and connections end at any byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/follow/reflector.hpp"
#include "control/kube/follow/store.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/kube/api_text.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::kube {
namespace kube_follow_property_test {

using namespace test;
using penstock::test::Prng;
using namespace std::chrono_literals;

class ModelServer {
 public:
    struct Change {
        std::string type;
        std::string name;
        std::string text;  // of the object after the change; before it if DELETED
    };

    explicit ModelServer(Prng& prng) : prng_(prng) {}

    void change_something() {
        const std::string name = "s" + std::to_string(prng_.below(12));
        const auto known = objects_.find(name);
        const int port = static_cast<int>(prng_.between(1, 65'535));
        const std::string text = service_text(name, version_at(history_.size() + 1), port);
        if (known == objects_.end()) {
            history_.push_back({"ADDED", name, text});
            objects_[name] = {port, text};
            said_.emplace(name, port);
        } else if (prng_.one_in(3)) {
            history_.push_back(
                {"DELETED", name, service_text(name, version_at(history_.size() + 1), known->second.port)});
            objects_.erase(known);
        } else {
            history_.push_back({"MODIFIED", name, text});
            known->second = {port, text};
            said_.emplace(name, port);
        }
    }
    void compact() { oldest_ = history_.size(); }

    // The complete response to a list request that arrives now; its HTTP status in `status`.
    std::string list(const std::map<std::string, std::string>& query, int& status) {
        status = 200;
        size_t first = 0;
        if (const auto token = query.find("continue"); token != query.end()) {
            const Pages& pages = pages_.at(token->second);
            if (pages.at < oldest_ || prng_.one_in(10)) {
                status = 410;
                return status_text(410, "Expired", "The provided continue parameter is too old");
            }
            return page(pages.items, pages.next, pages.at, true);
        }
        std::vector<std::string> items;
        for (const auto& [name, object] : objects_) {
            items.push_back(object.text);
        }
        return page(items, first, history_.size(), query.contains("limit") && !prng_.one_in(4));
    }
    // Position of the events behind the given version; nullopt if it has been compacted.
    std::optional<size_t> position_of(const std::string& version) const {
        for (size_t at = oldest_; at <= history_.size(); ++at) {
            if (version_at(at) == version) {
                return at;
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] const std::vector<Change>& history() const { return history_; }
    [[nodiscard]] std::string version() const { return version_at(history_.size()); }
    [[nodiscard]] std::map<std::string, int64_t> ports() const {
        std::map<std::string, int64_t> ports;
        for (const auto& [name, object] : objects_) {
            ports.emplace(name, object.port);
        }
        return ports;
    }
    [[nodiscard]] bool has_said(const std::string& name, int64_t port) const {
        return said_.contains({name, port});
    }
    // All objects as events, with the final bookmark.
    [[nodiscard]] std::string initial_events() const {
        std::string text;
        for (const auto& [name, object] : objects_) {
            text += event_text("ADDED", object.text);
        }
        return text + bookmark_text(version(), true);
    }

 private:
    struct Object {
        int port = 0;
        std::string text;
    };
    struct Pages {
        std::vector<std::string> items;
        size_t next = 0;
        size_t at = 0;
    };

    // Opaque: neither ordered nor numeric, and never repeated.
    static std::string version_at(size_t at) { return "v" + std::to_string((at * 7'919) % 1'000'003) + "x"; }

    std::string page(const std::vector<std::string>& items, size_t first, size_t at, bool limited) {
        const size_t end = limited ? std::min(items.size(), first + prng_.below(5)) : items.size();
        std::string token;
        if (end < items.size()) {
            token = "token-" + std::to_string(pages_.size());
            pages_[token] = {items, end, at};
        }
        return list_text(version_at(at),
                         {items.begin() + static_cast<std::ptrdiff_t>(first),
                          items.begin() + static_cast<std::ptrdiff_t>(end)},
                         token);
    }

    Prng& prng_;
    std::map<std::string, Object> objects_;
    std::vector<Change> history_;
    size_t oldest_ = 0;
    std::map<std::string, Pages> pages_;
    std::set<std::pair<std::string, int64_t>> said_;
};

class World {
 public:
    World(Prng& prng, bool streamed_lists, bool server_streams)
        : prng_(prng),
          server_(prng),
          server_streams_(server_streams),
          reflector_({ObjectKind::Service, "v1", "/s", "", ""}, store_.services(), access_, streamed_lists) {
        store_.slices().begin_list();
        store_.slices().commit_list(ObjectTable::Missing::Erase);
    }

    // Performs one random event.
    void step(bool quiet) {
        settle();
        const uint64_t what = prng_.below(quiet ? 40 : 100);
        if (transport_.open.empty()) {
            now_ = std::max(now_, reflector_.next_deadline());
        } else if (what < 40) {
            serve();
        } else if (what < 70) {
            server_.change_something();
        } else if (what < 75) {
            server_.compact();
        } else if (what < 80) {
            now_ += std::chrono::milliseconds(prng_.below(20'000));
        } else if (what < 90) {
            disturb();
        } else {
            end_stream();
        }
        settle();
        readers_.apply(store_.take_changes());
        for (const auto& [name, port] : held()) {
            ASSERT_TRUE(server_.has_said(name, port)) << name << " " << port;
        }
    }

    [[nodiscard]] bool is_in_step() {
        return watching_ && to_send_.empty() && sent_ == server_.history().size() &&
               store_.services().is_listed();
    }
    [[nodiscard]] std::map<std::string, int64_t> expected() const { return server_.ports(); }
    [[nodiscard]] std::map<std::string, int64_t> held() const {
        std::map<std::string, int64_t> ports;
        for (const auto& [name, service] : readers_.services) {
            ports.emplace(name.name, service->ports.at(0).port);
        }
        return ports;
    }

 private:
    void settle() {
        int rounds = 0;
        do {
            reflector_.on_time(now_);
            ASSERT_LT(++rounds, 1000);
        } while (reflector_.next_deadline() <= now_);
        if (transport_.open.empty() || transport_.open[0].id != answering_) {
            answering_ = transport_.open.empty() ? Transport::RequestId{} : transport_.open[0].id;
            watching_ = false;
            to_send_.clear();
        }
    }
    ResponseHandler& handler() { return *transport_.open[0].handler; }
    bool is_open() const { return !transport_.open.empty() && transport_.open[0].id == answering_; }
    void head(int status) {
        handler().on_head({.status = status, .retry_after = std::nullopt, .content_type = ""});
    }
    void end(std::optional<TransportError> error) {
        if (is_open()) {
            ResponseHandler& ended = handler();
            transport_.open.clear();
            ended.on_end(error);
        }
    }
    void answer(int status, const std::string& text) {
        head(status);
        send(text);
        end(std::nullopt);
    }
    // In random chunks.
    void send(std::string_view text) {
        while (!text.empty() && is_open()) {
            const size_t piece = 1 + prng_.below(std::min<size_t>(text.size(), 1 + prng_.below(400)));
            handler().on_body(text.substr(0, piece));
            text.remove_prefix(piece);
        }
    }

    void serve() {
        if (watching_) {
            while (sent_ < server_.history().size()) {
                const auto& change = server_.history()[sent_++];
                to_send_ += event_text(change.type, change.text);
            }
            if (prng_.one_in(4)) {
                to_send_ += bookmark_text(server_.version());
            }
            send(to_send_);
            to_send_.clear();
            return;
        }
        const auto query = query_of(transport_.open[0].request.target);
        if (!query.contains("watch")) {
            int status = 0;
            const std::string text = server_.list(query, status);
            answer(status, text);
        } else if (query.contains("sendInitialEvents")) {
            if (!server_streams_) {
                answer(422, status_text(422, "Invalid", "sendInitialEvents is forbidden"));
                return;
            }
            head(200);
            watching_ = true;
            sent_ = server_.history().size();
            to_send_ = server_.initial_events();
        } else if (const auto at = server_.position_of(query.at("resourceVersion"))) {
            head(200);
            watching_ = true;
            sent_ = *at;
        } else if (prng_.one_in(2)) {
            answer(410, status_text(410, "Expired", "too old resource version"));
        } else {
            answer(200, event_text("ERROR", status_text(410, "Expired", "too old resource version")));
        }
    }
    void disturb() {
        const uint64_t how = prng_.below(watching_ ? 3 : 6);
        if (how == 0) {
            end(TransportError{TransportError::Kind::Broken, "reset"});
        } else if (how == 1 && watching_) {
            cut();
            end(TransportError{TransportError::Kind::Broken, "reset"});
        } else if (how == 2 && watching_) {
            send("}garbage");
        } else if (how == 3) {
            answer(503, "");
        } else if (how == 4) {
            answer(401, "");
        } else {
            answer(500, "no");
        }
    }
    // Sends a part of the next event only.
    void cut() {
        if (sent_ < server_.history().size()) {
            const auto& change = server_.history()[sent_];
            const std::string text = event_text(change.type, change.text);
            send(std::string_view(text).substr(0, 1 + prng_.below(text.size() - 2)));
        }
    }
    void end_stream() {
        if (watching_) {
            end(std::nullopt);
        }
    }

    Prng& prng_;
    ModelServer server_;
    bool server_streams_;
    FakeTransport transport_;
    LogLines log_;
    Decoder decoder_;
    ServerAccess access_{transport_, decoder_,
                         [this] { return static_cast<double>(prng_.below(1000)) / 1000; }, log_};
    Store store_{false, log_};
    Reflector reflector_;
    Objects readers_;
    std::chrono::steady_clock::time_point now_{1h};

    Transport::RequestId answering_;
    bool watching_ = false;
    size_t sent_ = 0;
    std::string to_send_;
};

TEST(FollowProperty, TheStoreEndsEqualToTheServer_APISYNC006) {
    Prng prng;
    for (int history = 0; history < 1000; ++history) {
        const bool streamed_lists = prng.one_in(2);
        World world(prng, streamed_lists, prng.one_in(2));
        const uint64_t steps = prng.between(20, 400);
        for (uint64_t step = 0; step < steps; ++step) {
            world.step(false);
        }
        int quiet = 0;
        for (; quiet < 2000 && !(world.is_in_step() && quiet > 5); ++quiet) {
            world.step(true);
        }
        ASSERT_LT(quiet, 2000) << "it never catches up, in history " << history;
        ASSERT_EQ(world.held(), world.expected()) << "in history " << history;
    }
}

}  // namespace kube_follow_property_test
}  // namespace penstock::kube
