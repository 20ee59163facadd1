// SPDX-License-Identifier: Apache-2.0
// Keeps one table of the store in sync with one collection of an API server: lists it, watches it from the
// version of that list, and handles all errors. A machine without I/O: requests go to a Transport, responses
// come back through it, time and random numbers are arguments.
//
//                         .---------- expired, or three failures on one version ----------.
//                         v                                                               |
//   start --> list in pages, or streamed --> complete: replaces the table --> watch --> ended --> watch again
//                 |    ^                                                      |    ^           from the last
//                 `----'  failed: wait                         failed: wait   `----'           version
//
// On any error, however long it lasts, the table keeps its contents (APISYNC-014). Every server error causes
// a wait, so that no response, however unusual, leads to a request loop without pause.
//
// Callbacks of the transport change the table at once and leave the rest to the following on_time(): the
// driver of the transport calls it after each poll.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "control/kube/backoff.hpp"
#include "control/kube/decode.hpp"
#include "control/kube/follow/collections.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/follow/trouble.hpp"
#include "control/kube/json/json_stream.hpp"
#include "control/kube/list_reader.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/random_source.hpp"
#include "control/kube/rate_limit.hpp"
#include "control/kube/source_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

// Shared by all reflectors of one server; outlives them.
struct ServerAccess {
    Transport& transport;
    Decoder& decoder;
    RandomSource random;
    LogLines& log;
};

class Reflector final : private ResponseHandler {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    // An API server terminates a list after 60 s by itself; a longer wait means that the server is dead.
    static constexpr std::chrono::seconds kListTimeout{75};
    // A watch requests a random duration between these, so that watches spread over the servers of a cluster
    // (APISYNC-004).
    static constexpr int64_t kWatchSecondsMin = 300;
    static constexpr int64_t kWatchSecondsMax = 600;
    // A watch that exceeds its requested duration by this time is ended by the client: a middlebox keeps a
    // connection open whose server is gone.
    static constexpr std::chrono::seconds kWatchOverdue{30};
    // Streamed lists: time limit for the end of the initial events, and pause before a server without them is
    // tried again.
    static constexpr std::chrono::seconds kStreamedListTime{30};
    static constexpr std::chrono::minutes kStreamedListRetry{10};
    static constexpr std::chrono::seconds kForbiddenWait{30};
    static constexpr std::chrono::seconds kBehindWait{
        1};                                 // a server that is behind gets time to catch up (APISYNC-010)
    static constexpr int kFailuresMax = 3;  // consecutive, on one version or one page
    static constexpr size_t kPagesMax =
        10'000;  // of one list: five million objects; more is a server that makes them up
    // Watches that end at once are reopened at once, but at most one per second in the long run
    // (APISYNC-004).
    static constexpr std::chrono::seconds kRestartInterval{1};
    static constexpr uint32_t kRestartBurst = 5;

    // Starts with the first on_time(). `streamed_lists`: try them (APISYNC-011). `table` outlives this.
    Reflector(Collection collection, ObjectTable& table, ServerAccess& server, bool streamed_lists);
    ~Reflector() override;
    Reflector(const Reflector&) = delete;
    Reflector& operator=(const Reflector&) = delete;

    // Time at which on_time() has work to do even if nothing arrives.
    [[nodiscard]] Time next_deadline() const;
    void on_time(Time now);

    // The same objects are now served by another collection: lists it at once. The table keeps its contents
    // until that list is complete.
    void move_to(Collection collection);
    // Lists the collection anew, at its most recent version: a consistent read, not the state of a cache. The
    // table keeps its contents until that list is complete.
    void relist();
    // No list by relist() is pending.
    [[nodiscard]] bool is_relisted() const { return !newest_only_; }
    // The last response was 404: the collection is not served.
    [[nodiscard]] bool is_not_served() const { return is_not_served_; }
    // A first list has been committed to the table.
    [[nodiscard]] bool is_listed() const { return table_.is_listed(); }
    [[nodiscard]] const Collection& collection() const { return collection_; }

    [[nodiscard]] CollectionStatus status(Time now) const;

 private:
    static constexpr int kOk = 200;  // HTTP status

    enum class Doing : uint8_t {
        Listing,
        Streaming,
        Watching
    };  // Streaming: a list by a watch's initial events
    enum class Next : uint8_t { List, Watch };

    // Parameters of the list in progress, or of the next one.
    struct ListPlan {
        bool limited = true;
        bool any_version = false;  // also one older than the last version seen
        std::string continue_token;
        std::string version;                     // of the first page; the watch repeats later changes
        std::unordered_set<size_t> tokens_seen;  // hashes: a token may be long
        bool has_unnamed = false;
    };

    // on_head, on_body and on_end of the request in progress
    void on_head(const ResponseHead& head) override;
    void on_body(std::string_view bytes) override;
    void on_end(const std::optional<TransportError>& error) override;

    // The request in progress, and its response.
    struct Exchange {
        Doing doing = Doing::Listing;
        Transport::RequestId id;
        Time started;
        Time overdue = Time::max();  // of a watch
        Time give_up = Time::max();
        std::optional<ResponseHead> head;
        std::string error_body;          // of an error response
        std::optional<ListReader> page;  // of a list
        JsonStream events{};             // of a watch
        uint64_t objects = 0;            // events about an object
        bool has_ended = false;
        std::optional<Trouble> trouble;
    };

    void start(Time now);
    void start_list(Time now);
    void start_watch(Time now, bool streamed);
    [[nodiscard]] Collection asked() const;

    void abandon(Trouble trouble);
    void on_overdue();
    [[nodiscard]] Status on_event_text(std::string_view json);
    void apply(WatchEvent event);
    void advance_to(const std::string& version);
    void end_streamed_list(const std::string& version);
    void complete_list();

    void finish(Exchange& answer, Time now);
    void finish_page(Exchange& answer, Time now);
    void finish_watch(Exchange& answer, Time now);
    void note_lost(const Exchange& answer, Time now);

    void on_trouble(Exchange& answer, Time now);
    [[nodiscard]] bool is_refusal_of_field_selector(const Trouble& trouble) const;
    void plan_list_after_expiry(const Exchange& answer);
    void plan_list();

    [[nodiscard]] std::string described(const std::string& what) const;
    void log_unnamed(const std::vector<std::string>& faults);
    void report(const Trouble& trouble);
    // Effect of a trouble on the program, if the text of the trouble does not show it; otherwise "".
    [[nodiscard]] std::string consequence_of(const Trouble& trouble) const;
    void report_well();

    Collection collection_;
    ObjectTable& table_;
    ServerAccess& server_;
    bool streamed_lists_;
    Backoff backoff_;
    // Separate from the other failures: expiry after an outage is not a further failure, and requires a new
    // list soon.
    Backoff expiry_backoff_;
    RateLimit restarts_{kRestartInterval, kRestartBurst};

    std::optional<Exchange> exchange_;
    Next next_ = Next::List;
    Time due_ = Time::min();
    ListPlan list_;
    std::string version_;  // last version seen, opaque (APISYNC-009); "": none
    int failures_ = 0;     // consecutive, on version_ or on the requested page
    bool retried_credentials_ = false;
    bool is_not_served_ = false;
    bool newest_only_ = false;  // relist(), until the list is complete
    bool is_field_selector_refused_ = false;
    Time streamed_lists_again_ = Time::min();

    // For the status.
    bool heard_ = false;  // data received since the last on_time()
    std::optional<Time> heard_at_;
    std::optional<Time> lost_at_;  // when the table was last known to be in sync; unset while it is
    uint64_t lists_ = 0;
    uint64_t watches_ = 0;
    std::optional<Trouble> lasting_;
    std::map<std::string, uint64_t> errors_;
};

}  // namespace penstock::kube
