// Keeps one table of the store in step with one collection of an API server: lists it, watches it from the version of that list, and
// knows what to do about everything that goes wrong. A machine without I/O: requests go to a Transport, answers come back by it, time and
// chance are arguments.
//
//                           .---------------- expired, or three failures on one version -----.
//                           v                                                                |
//     start --> list in pages, or streamed --> complete: replaces the table --> watch --> ended --> watch again from the last version
//                   |    ^                                                       |    ^
//                   `----'  failed: wait                          failed: wait   `----'
//
// Whatever fails and however long it lasts, the table keeps what it has (APISYNC-014). What a server does wrong costs a wait, so that no
// answer, however odd, makes us ask in a circle without pause.
//
// Call-backs of the transport change the table at once, and leave the rest to the on_time() that follows: whoever runs the transport calls
// it after each poll.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "control/kube/backoff.hpp"
#include "control/kube/collections.hpp"
#include "control/kube/decode.hpp"
#include "control/kube/json_stream.hpp"
#include "control/kube/list_reader.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/random_source.hpp"
#include "control/kube/rate_limit.hpp"
#include "control/kube/source_status.hpp"
#include "control/kube/store.hpp"
#include "control/kube/transport.hpp"
#include "control/kube/trouble.hpp"

namespace penstock::kube {

// What all reflectors of one server use; outlives them.
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

    // An API server gives up a list after 60 s by itself; beyond that only a dead one is waited for.
    static constexpr std::chrono::seconds kListTimeout{75};
    // A watch is asked to end after a random time between these, so that watches spread over the servers of a cluster (APISYNC-004).
    static constexpr int64_t kWatchSecondsMin = 300;
    static constexpr int64_t kWatchSecondsMax = 600;
    // A watch that should have ended this long ago is ended from here: something on the way holds a connection whose server has gone.
    static constexpr std::chrono::seconds kWatchOverdue{30};
    // Streamed lists: how long the end of the initial events may take, and how long a server that has none is not asked again.
    static constexpr std::chrono::seconds kStreamedListTime{30};
    static constexpr std::chrono::minutes kStreamedListRetry{10};
    static constexpr std::chrono::seconds kForbiddenWait{30};
    static constexpr std::chrono::seconds kBehindWait{
        1};                                 // a server that is behind gets time to catch up (APISYNC-010)
    static constexpr int kFailuresMax = 3;  // in a row on one version, or one page
    static constexpr size_t kPagesMax =
        10'000;  // of one list: five million objects; more is a server that makes them up
    // Watches that end at once are opened again at once, but not for ever: one a second in the long run (APISYNC-004).
    static constexpr std::chrono::seconds kRestartInterval{1};
    static constexpr uint32_t kRestartBurst = 5;

    // Begins with the first on_time(). `streamed_lists`: try them (APISYNC-011). `table` outlives this.
    Reflector(Collection collection, ObjectTable& table, ServerAccess& server, bool streamed_lists);
    ~Reflector() override;
    Reflector(const Reflector&) = delete;
    Reflector& operator=(const Reflector&) = delete;

    // When on_time() has something to do though nothing arrives.
    [[nodiscard]] Time next_deadline() const;
    void on_time(Time now);

    // The same objects are served elsewhere now: they are listed there at once. What is in the table stays until that is complete.
    void move_to(Collection collection);
    // The last answer was 404: nothing is served there.
    [[nodiscard]] bool is_not_served() const { return is_not_served_; }
    // There is something to lose.
    [[nodiscard]] bool is_listed() const { return table_.is_listed(); }
    [[nodiscard]] const Collection& collection() const { return collection_; }

    [[nodiscard]] CollectionStatus status(Time now) const;

 private:
    enum class Doing : uint8_t {
        Listing,
        Streaming,
        Watching
    };  // Streaming: a list by a watch's initial events
    enum class Next : uint8_t { List, Watch };

    // How the list that is under way, or comes next, is asked for.
    struct ListPlan {
        bool limited = true;
        bool any_version = false;  // also one from before what we have seen
        std::string continue_token;
        std::string version;  // of the first page: what comes later is told again by the watch
        std::unordered_set<size_t> tokens_seen;  // hashes: a token may be long
        bool has_unnamed = false;
    };

    // on_head, on_body and on_end of the request under way
    void on_head(const ResponseHead& head) override;
    void on_body(std::string_view bytes) override;
    void on_end(const std::optional<TransportError>& error) override;

    // The request under way, and its answer.
    struct Exchange {
        Doing doing = Doing::Listing;
        Transport::RequestId id;
        Time started;
        Time overdue = Time::max();  // of a watch
        Time give_up = Time::max();
        std::optional<ResponseHead> head;
        std::string error_body;          // of an answer that is an error
        std::optional<ListReader> page;  // of a list's
        JsonStream events{};             // of a watch's
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
    void tell_unnamed(const std::vector<std::string>& faults);
    void report(const Trouble& trouble);
    // What a trouble means for the program, where its text does not show it; "" else.
    [[nodiscard]] std::string consequence_of(const Trouble& trouble) const;
    void report_well();

    Collection collection_;
    ObjectTable& table_;
    ServerAccess& server_;
    bool streamed_lists_;
    Backoff backoff_;
    // Apart from the other failures: expiry after an outage is no further failure, and what is needed then is a list, soon.
    Backoff expiry_backoff_;
    RateLimit restarts_{kRestartInterval, kRestartBurst};

    std::optional<Exchange> exchange_;
    Next next_ = Next::List;
    Time due_ = Time::min();
    ListPlan list_;
    std::string version_;  // the last that was seen, opaque (APISYNC-009); "": none
    int failures_ = 0;     // in a row, on version_ or on the page that is asked for
    bool retried_credentials_ = false;
    bool is_not_served_ = false;
    bool is_field_selector_refused_ = false;
    Time streamed_lists_again_ = Time::min();

    // For the status.
    bool heard_ = false;  // since the last on_time()
    std::optional<Time> heard_at_;
    std::optional<Time> lost_at_;  // when the table was last known to follow, unless it does now
    uint64_t lists_ = 0;
    uint64_t watches_ = 0;
    std::optional<Trouble> lasting_;
    std::map<std::string, uint64_t> errors_;
};

}  // namespace penstock::kube
