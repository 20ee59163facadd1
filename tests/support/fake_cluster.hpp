// A well-behaved API server's memory as a script for FakeApiServer: collections of objects with versions, lists in pages, watches with
// bookmarks, 410 for what was compacted, and a record of what was written. Its switches let single answers differ, and intercept() any.
//
//   FakeCluster cluster;
//   FakeApiServer server(cluster.handler());
//   cluster.put("/api/v1/services", "default/web", R"({"metadata":{"name":"web","namespace":"default","resourceVersion":"$RV"},...})");
//
// All functions may be called from any thread. Lists in the name of a namespace, selectors and other parameters that only filter are not
// understood, and ignored, as some servers do.
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
        bool has_chunks = true;     // else lists ignore limit
        bool has_bookmarks = true;  // else watches ignore allowWatchBookmarks
        bool has_streaming_lists =
            true;  // else sendInitialEvents is answered 422, as by a server that lacks the feature
        std::chrono::milliseconds bookmark_period{1000};
        std::string token;  // what every request must carry, else 401; "": anybody
    };
    // True: it has answered.
    using Interceptor = std::function<bool(const RecordedRequest&, Connection&)>;

    FakeCluster() = default;
    FakeApiServer::Handler handler();

    // Adds or replaces an object; each "$RV" in the text becomes the new version, which is returned. `name` orders lists.
    uint64_t put(const std::string& collection, const std::string& name, std::string json);
    // A watch shows it as it last was, with the version of its end.
    uint64_t erase(const std::string& collection, const std::string& name);
    // Forgets the past: running watches end, and those that want to go on from before now get 410, as continue tokens do.
    void compact();
    // Running watches end well, as after timeoutSeconds.
    void end_watches();
    // Running watches get this, whatever it is, as their next bytes.
    void inject(const std::string& collection, const std::string& bytes);

    void set_behaviour(const Behaviour& behaviour);
    void intercept(Interceptor interceptor);

    uint64_t version() const;
    size_t watch_count(const std::string& collection) const;
    // POST, PUT, PATCH and DELETE, all of which succeed and change nothing here.
    std::vector<RecordedRequest> writes() const;

 private:
    struct Object {
        std::string json;
        uint64_t version;
    };
    struct Event {
        uint64_t version;
        std::string collection;
        const char* type;  // null: inject
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
    uint64_t oldest_ = 1000;  // the past begins here
    uint64_t watch_round_ = 0;
    uint64_t compactions_ = 0;
    uint64_t next_token_ = 1;
    std::map<std::string, Collection> collections_;
    std::vector<Event> events_;
    std::map<std::string, std::pair<uint64_t, Page>> continued_;  // token -> version and what is left
    std::vector<RecordedRequest> writes_;
};

}  // namespace penstock::test
