// SPDX-License-Identifier: Apache-2.0
// The state of a well-behaved API server as a script for FakeApiServer: collections of objects with versions,
// paged lists, watches with bookmarks, 410 for compacted versions, and a record of writes. Switches change
// single features, and intercept() any answer.
//
//   FakeCluster cluster;
//   FakeApiServer server(cluster.handler());
//   cluster.put("/api/v1/services", "default/web",
//               R"({"metadata":{"name":"web","namespace":"default","resourceVersion":"$RV"},...})");
//
// All functions may be called from any thread. Lists of one namespace, selectors and other filtering
// parameters are ignored, as some servers do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/fake_api_server.hpp"

namespace penstock::test {

class FakeCluster {
 public:
    struct Behaviour {
        bool has_chunks = true;     // false: lists ignore limit
        bool has_bookmarks = true;  // false: watches ignore allowWatchBookmarks
        bool has_streaming_lists =
            true;  // false: sendInitialEvents is answered 422, as by a server without the feature
        std::chrono::milliseconds bookmark_period{1000};
        std::string token;  // required in every request, otherwise 401; "": none required
    };
    // Returns true if it has answered the request.
    using Interceptor = std::function<bool(const RecordedRequest&, Connection&)>;

    FakeCluster() = default;
    FakeApiServer::Handler handler();

    // Adds or replaces an object. Each "$RV" in the text is replaced by the new version, which is returned.
    // Lists are ordered by `name`.
    uint64_t put(const std::string& collection, const std::string& name, std::string json);
    // Watches report the last content of the object, with the version of the deletion.
    uint64_t erase(const std::string& collection, const std::string& name);
    // Discards old versions: running watches end. Watches and continue tokens of older versions get 410.
    void compact();
    // Ends running watches regularly, as after timeoutSeconds.
    void end_watches();
    // Sends these bytes to running watches, valid or not.
    void inject(const std::string& collection, const std::string& bytes);

    void set_behaviour(const Behaviour& behaviour);
    void intercept(Interceptor interceptor);

    uint64_t version() const;
    size_t watch_count(const std::string& collection) const;
    // Recorded POST, PUT, PATCH and DELETE requests. All succeed and change nothing here.
    std::vector<RecordedRequest> writes() const;

 private:
    struct Object {
        std::string json;
        uint64_t version;
    };
    struct Event {
        uint64_t version;
        std::string collection;
        const char* type;  // null: injected bytes
        std::string json;
    };
    struct Collection {
        std::map<std::string, Object> objects;
        size_t watches = 0;
    };
    using Page = std::vector<std::string>;

    void answer(const RecordedRequest& request, Connection& connection);
    void list(const RecordedRequest& request, Connection& connection);
    void watch(const RecordedRequest& request, Connection& connection);

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Behaviour behaviour_;
    Interceptor interceptor_;
    uint64_t version_ = 1000;
    uint64_t oldest_ = 1000;  // oldest version kept
    uint64_t watch_round_ = 0;
    uint64_t compactions_ = 0;
    uint64_t next_token_ = 1;
    std::map<std::string, Collection> collections_;
    std::vector<Event> events_;
    std::map<std::string, std::pair<uint64_t, Page>> continued_;  // token -> version and remaining items
    std::vector<RecordedRequest> writes_;
};

}  // namespace penstock::test
