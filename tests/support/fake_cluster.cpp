// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cluster.hpp"

#include <algorithm>
#include <cstdlib>

namespace penstock::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string with_version(std::string json, uint64_t version) {
    constexpr std::string_view kMark = "$RV";
    const std::string text = std::to_string(version);
    for (size_t at = 0; (at = json.find(kMark, at)) != std::string::npos;) {
        json.replace(at, kMark.size(), text);
    }
    return json;
}

struct Kind {
    std::string api_version;
    std::string kind;
};

// "/apis/discovery.k8s.io/v1/endpointslices" -> discovery.k8s.io/v1, EndpointSlice.
Kind kind_of(const std::string& collection) {
    const size_t last = collection.rfind('/');
    const std::string plural = collection.substr(last + 1);
    const std::string group =
        collection.starts_with("/apis/") ? collection.substr(6, last - 6) : collection.substr(5, last - 5);
    if (plural == "endpointslices") {
        return {group, "EndpointSlice"};
    }
    return {group, plural == "services"       ? "Service"
                   : plural == "nodes"        ? "Node"
                   : plural == "namespaces"   ? "Namespace"
                   : plural == "addresspools" ? "AddressPool"
                                              : "Unknown"};
}

std::string status_json(int code, const std::string& reason, const std::string& message) {
    return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" + message +
           R"(","reason":")" + reason + R"(","code":)" + std::to_string(code) + "}";
}

std::string too_large_version_json() {
    return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Too large resource version","reason":"Timeout",)"
           R"("details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},)"
           R"("code":504})";
}

std::string event_json(const std::string& type, const std::string& object) {
    return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

std::string bookmark_json(const Kind& kind, uint64_t version, bool ends_initial_events) {
    const std::string annotations =
        ends_initial_events ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "";
    return event_json("BOOKMARK", R"({"kind":")" + kind.kind + R"(","apiVersion":")" + kind.api_version +
                                      R"(","metadata":{"resourceVersion":")" + std::to_string(version) +
                                      "\"" + annotations + "}}");
}

std::string list_json(const Kind& kind, uint64_t version, const std::string& continue_token, size_t remaining,
                      const std::vector<std::string>& items) {
    std::string json = R"({"kind":")" + kind.kind + R"(List","apiVersion":")" + kind.api_version +
                       R"(","metadata":{"resourceVersion":")" + std::to_string(version) + "\"";
    if (!continue_token.empty()) {
        json +=
            R"(,"continue":")" + continue_token + R"(","remainingItemCount":)" + std::to_string(remaining);
    }
    json += R"(},"items":[)";
    for (size_t i = 0; i < items.size(); ++i) {
        json += (i == 0 ? "" : ",") + items[i];
    }
    return json + "]}\n";
}

uint64_t number_of(const std::string& text) {
    return std::strtoull(text.c_str(), nullptr, 10);
}

bool is_true(const std::string& text) {
    return text == "true" || text == "1";
}

void fail_with(Connection& connection, int code, const std::string& reason, const std::string& message) {
    connection.respond(code, status_json(code, reason, message));
}

}  // namespace

FakeApiServer::Handler FakeCluster::handler() {
    return [this](const RecordedRequest& request, Connection& connection) { answer(request, connection); };
}

uint64_t FakeCluster::put(const std::string& collection, const std::string& name, std::string json) {
    const std::lock_guard lock(mutex_);
    ++version_;
    json = with_version(std::move(json), version_);
    auto& objects = collections_[collection].objects;
    const char* type = objects.contains(name) ? "MODIFIED" : "ADDED";
    objects[name] = {json, version_};
    events_.push_back({.version = version_, .collection = collection, .type = type, .json = std::move(json)});
    changed_.notify_all();
    return version_;
}

uint64_t FakeCluster::erase(const std::string& collection, const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto& objects = collections_[collection].objects;
    const auto at = objects.find(name);
    if (at == objects.end()) {
        return version_;
    }
    ++version_;
    std::string json = at->second.json;
    const std::string former = R"("resourceVersion":")" + std::to_string(at->second.version) + "\"";
    if (const size_t found = json.find(former); found != std::string::npos) {
        json.replace(found, former.size(), R"("resourceVersion":")" + std::to_string(version_) + "\"");
    }
    objects.erase(at);
    events_.push_back(
        {.version = version_, .collection = collection, .type = "DELETED", .json = std::move(json)});
    changed_.notify_all();
    return version_;
}

void FakeCluster::compact() {
    const std::lock_guard lock(mutex_);
    oldest_ = version_;
    events_.clear();
    continued_.clear();
    ++compactions_;
    changed_.notify_all();
}

void FakeCluster::end_watches() {
    const std::lock_guard lock(mutex_);
    ++watch_round_;
    changed_.notify_all();
}

void FakeCluster::inject(const std::string& collection, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    events_.push_back({.version = version_, .collection = collection, .type = nullptr, .json = bytes});
    changed_.notify_all();
}

void FakeCluster::set_behaviour(const Behaviour& behaviour) {
    const std::lock_guard lock(mutex_);
    behaviour_ = behaviour;
}

void FakeCluster::intercept(Interceptor interceptor) {
    const std::lock_guard lock(mutex_);
    interceptor_ = std::move(interceptor);
}

uint64_t FakeCluster::version() const {
    const std::lock_guard lock(mutex_);
    return version_;
}

size_t FakeCluster::watch_count(const std::string& collection) const {
    const std::lock_guard lock(mutex_);
    const auto at = collections_.find(collection);
    return at == collections_.end() ? 0 : at->second.watches;
}

std::vector<RecordedRequest> FakeCluster::writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
}

void FakeCluster::answer(const RecordedRequest& request, Connection& connection) {
    Interceptor interceptor;
    std::string token;
    {
        const std::lock_guard lock(mutex_);
        interceptor = interceptor_;
        token = behaviour_.token;
    }
    if (interceptor && interceptor(request, connection)) {
        return;
    }
    if (!token.empty() && request.header("authorization") != "Bearer " + token) {
        return fail_with(connection, 401, "Unauthorized", "Unauthorized");
    }
    if (request.method != "GET") {
        {
            const std::lock_guard lock(mutex_);
            writes_.push_back(request);
        }
        connection.respond(request.method == "POST" ? 201 : 200, request.body.empty() ? "{}" : request.body);
        return;
    }
    if (is_true(request.query("watch"))) {
        return watch(request, connection);
    }
    list(request, connection);
}

void FakeCluster::list(const RecordedRequest& request, Connection& connection) {
    const std::string collection = request.path();
    std::unique_lock lock(mutex_);
    uint64_t version = version_;
    Page left;
    if (const std::string token = request.query("continue"); !token.empty()) {
        const auto at = continued_.find(token);
        if (at == continued_.end()) {
            lock.unlock();
            return fail_with(connection, 410, "Expired", "The provided continue parameter is too old");
        }
        version = at->second.first;
        left = at->second.second;
    } else {
        if (number_of(request.query("resourceVersion")) > version_) {
            lock.unlock();
            connection.respond(504, too_large_version_json());
            return;
        }
        for (const auto& [name, object] : collections_[collection].objects) {
            left.push_back(object.json);
        }
    }
    const uint64_t limit = behaviour_.has_chunks ? number_of(request.query("limit")) : 0;
    std::string next;
    Page page = left;
    size_t remaining = 0;
    if (limit > 0 && left.size() > limit) {
        page.resize(limit);
        left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(limit));
        remaining = left.size();
        next = "token" + std::to_string(next_token_++);
        continued_[next] = {version, std::move(left)};
    }
    lock.unlock();
    connection.respond(200, list_json(kind_of(collection), version, next, remaining, page));
}

void FakeCluster::watch(const RecordedRequest& request, Connection& connection) {
    const std::string path = request.path();
    const Kind kind = kind_of(path);
    const std::string from = request.query("resourceVersion");
    const bool sends_initial = is_true(request.query("sendInitialEvents"));
    std::unique_lock lock(mutex_);
    const Behaviour behaviour = behaviour_;
    if (sends_initial && !behaviour.has_streaming_lists) {
        lock.unlock();
        return fail_with(connection, 422, "Invalid", "sendInitialEvents is forbidden for watch");
    }
    Collection& collection = collections_[path];
    uint64_t seen = sends_initial || from.empty() || from == "0" ? version_ : number_of(from);
    if (seen < oldest_) {
        // As real servers do: the stream begins, and its first event reports the error.
        lock.unlock();
        connection.start_chunks(200);
        connection.chunk(event_json("ERROR", status_json(410, "Expired", "too old resource version")));
        connection.end_chunks();
        return;
    }
    std::string bytes;
    if (sends_initial || from.empty() || from == "0") {
        for (const auto& [name, object] : collection.objects) {
            bytes += event_json("ADDED", object.json);
        }
    }
    if (sends_initial) {
        bytes += bookmark_json(kind, version_, true);
    }
    size_t next_event = events_.size();
    while (next_event > 0 && events_[next_event - 1].version > seen) {
        --next_event;
    }
    ++collection.watches;
    const uint64_t round = watch_round_;
    const uint64_t compactions = compactions_;
    const bool bookmarks = behaviour.has_bookmarks && is_true(request.query("allowWatchBookmarks"));
    const uint64_t limit_seconds = number_of(request.query("timeoutSeconds"));
    const auto ends_at = steady_clock::now() + std::chrono::seconds(limit_seconds > 0 ? limit_seconds : 1800);
    auto bookmark_at = steady_clock::now() + behaviour.bookmark_period;
    lock.unlock();
    bool is_open = connection.start_chunks(200) && connection.chunk(bytes);
    lock.lock();
    while (is_open && round == watch_round_ && compactions == compactions_ && steady_clock::now() < ends_at) {
        bytes.clear();
        for (; next_event < events_.size(); ++next_event) {
            const Event& event = events_[next_event];
            if (event.collection == path) {
                bytes += event.type == nullptr ? event.json : event_json(event.type, event.json);
            }
        }
        if (bookmarks && steady_clock::now() >= bookmark_at) {
            bytes += bookmark_json(kind, version_, false);
            bookmark_at = steady_clock::now() + behaviour.bookmark_period;
        }
        if (bytes.empty()) {
            // Short, so that a disconnected peer is noticed.
            changed_.wait_for(lock, milliseconds(20));
            lock.unlock();
            is_open = connection.wait(milliseconds(0));
        } else {
            lock.unlock();
            is_open = connection.chunk(bytes);
        }
        lock.lock();
    }
    --collections_[path].watches;
    lock.unlock();
    if (is_open) {
        connection.end_chunks();
    }
}

}  // namespace penstock::test
