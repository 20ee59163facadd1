// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/reflector.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace penstock::kube {
namespace {

// Maximum number of bytes read from an error response: a metav1.Status is far smaller, and an HTML page of a
// proxy is not useful.
constexpr size_t kErrorBodyMax = 64 * 1024;
constexpr size_t kTypeShown = 80;  // of an unknown word

// "0" is no version to resume from: servers interpret it as "any version", and deletions in between would
// never be reported.
bool is_version(const std::string& version) {
    return !version.empty() && version != "0";
}

}  // namespace

Reflector::Reflector(Collection collection, ObjectTable& table, ServerAccess& server, bool streamed_lists)
    : collection_(std::move(collection)),
      table_(table),
      server_(server),
      streamed_lists_(streamed_lists),
      backoff_(server.random),
      expiry_backoff_(server.random) {}

Reflector::~Reflector() {
    if (exchange_) {
        server_.transport.cancel(exchange_->id);
    }
}

Reflector::Time Reflector::next_deadline() const {
    if (!exchange_) {
        return due_;
    }
    return exchange_->has_ended ? Time::min() : exchange_->give_up;
}

void Reflector::on_time(Time now) {
    if (std::exchange(heard_, false)) {
        heard_at_ = now;
    }
    if (exchange_ && !exchange_->has_ended && now >= exchange_->give_up) {
        on_overdue();
    }
    if (exchange_ && exchange_->has_ended) {
        Exchange answer = std::move(*exchange_);
        exchange_.reset();
        finish(answer, now);
    }
    if (!exchange_ && now >= due_) {
        start(now);
    }
}

void Reflector::move_to(Collection collection) {
    if (exchange_) {
        server_.transport.cancel(exchange_->id);
        exchange_.reset();
    }
    table_.drop_list();
    collection_ = std::move(collection);
    version_.clear();  // possibly of another history
    list_ = {};
    next_ = Next::List;
    due_ = Time::min();
    failures_ = 0;
    is_not_served_ = false;
    is_field_selector_refused_ = false;
    lasting_.reset();
}

// ---- requests

void Reflector::relist() {
    if (exchange_) {
        server_.transport.cancel(exchange_->id);
        exchange_.reset();
    }
    table_.drop_list();
    newest_only_ = true;
    list_ = {};
    next_ = Next::List;
    due_ = Time::min();
}

void Reflector::start(Time now) {
    const bool list_begins = list_.limited && list_.continue_token.empty();
    if (next_ == Next::Watch) {
        start_watch(now, false);
    } else if (streamed_lists_ && list_begins && now >= streamed_lists_again_) {
        start_watch(now, true);
    } else {
        start_list(now);
    }
}

void Reflector::start_list(Time now) {
    if (list_.continue_token.empty()) {
        table_.begin_list();
    }
    const ListQuery query{.limited = list_.limited,
                          .continue_token = list_.continue_token,
                          .not_older_than = list_.any_version || newest_only_ ? "" : version_};
    Exchange& exchange = exchange_.emplace(Exchange{});
    exchange.doing = Doing::Listing;
    exchange.started = now;
    exchange.page.emplace(server_.decoder, collection_.kind);
    exchange.id = server_.transport.start(
        {.target = list_target(asked(), query), .accept_gzip = true, .timeout = kListTimeout}, *this);
}

void Reflector::start_watch(Time now, bool streamed) {
    constexpr auto kSpread = static_cast<double>(kWatchSecondsMax - kWatchSecondsMin + 1);
    const int64_t timeout_s = kWatchSecondsMin + static_cast<int64_t>(server_.random() * kSpread);
    const WatchQuery query{.version = streamed && (list_.any_version || newest_only_) ? "" : version_,
                           .initial_events = streamed,
                           .timeout_s = timeout_s};
    Exchange& exchange = exchange_.emplace(Exchange{});
    exchange.doing = streamed ? Doing::Streaming : Doing::Watching;
    exchange.started = now;
    exchange.overdue = now + std::chrono::seconds{timeout_s} + kWatchOverdue;
    exchange.give_up = streamed ? now + kStreamedListTime : exchange.overdue;
    if (streamed) {
        table_.begin_list();
    } else {
        ++watches_;
        (void)restarts_.take(now);  // finish_watch() has waited for it
    }
    exchange.id = server_.transport.start({.target = watch_target(asked(), query), .watch = true}, *this);
}

Collection Reflector::asked() const {
    Collection asked = collection_;
    if (is_field_selector_refused_) {
        asked.field_selector.clear();
    }
    return asked;
}

// ---- the response, as it arrives

void Reflector::on_head(const ResponseHead& head) {
    exchange_->head = head;
    if (head.status == kOk && !head.content_type.empty() &&
        head.content_type.find("json") == std::string::npos) {
        abandon({.kind = Trouble::Kind::Broken,
                 .name = "decode",
                 .what = "the response is " + head.content_type.substr(0, kTypeShown) +
                         ", not JSON (is the server an API server, or does a proxy respond in its place?)"});
        return;
    }
    if (head.status == kOk) {
        is_not_served_ = false;  // not only at the end, which for a watch is minutes later
        if (exchange_->doing == Doing::Watching) {
            report_well();
        }
    }
}

void Reflector::on_body(std::string_view bytes) {
    if (!exchange_->head || exchange_->head->status != kOk) {
        exchange_->error_body.append(
            bytes.substr(0, kErrorBodyMax - std::min(kErrorBodyMax, exchange_->error_body.size())));
        return;
    }
    const Status read =
        exchange_->page
            ? exchange_->page->push(bytes)
            : exchange_->events.push(bytes, [this](std::string_view json) { return on_event_text(json); });
    if (!read && !exchange_->has_ended) {
        abandon({.kind = Trouble::Kind::Broken, .name = "decode", .what = read.error().what});
    }
}

void Reflector::on_end(const std::optional<TransportError>& error) {
    Exchange& answer = *exchange_;
    answer.has_ended = true;
    if (answer.head && answer.head->status != kOk) {
        ApiStatus status = decode_status(server_.decoder, answer.error_body).value_or(ApiStatus{});
        status.code = answer.head->status;
        status.message = server_.transport.without_secrets(std::move(status.message));
        answer.trouble = trouble_of(status);
        answer.trouble->retry_after = std::max(answer.trouble->retry_after, answer.head->retry_after);
    } else if (error) {
        answer.trouble = trouble_of(*error);
    } else if (!answer.page) {
        if (const Status whole = answer.events.finish(); !whole) {
            answer.trouble = {.kind = Trouble::Kind::Broken, .name = "decode", .what = whole.error().what};
        }
    }
}

void Reflector::abandon(Trouble trouble) {
    server_.transport.cancel(exchange_->id);
    exchange_->has_ended = true;
    exchange_->trouble = std::move(trouble);
}

void Reflector::on_overdue() {
    server_.transport.cancel(exchange_->id);
    exchange_->has_ended = true;
    if (exchange_->doing == Doing::Streaming) {
        exchange_->trouble = {.kind = Trouble::Kind::NoEnd,
                              .name = "no_initial_events_end",
                              .what = "the end of the initial events did not arrive"};
    } else if (!exchange_->head) {
        exchange_->trouble = {
            .kind = Trouble::Kind::Unreachable, .name = "timeout", .what = "no response to a watch"};
    }  // otherwise handled as if the server had ended it
}

Status Reflector::on_event_text(std::string_view json) {
    PENSTOCK_TRY(auto event, decode_watch_event(server_.decoder, collection_.kind, json));
    heard_ = true;
    apply(std::move(event));
    return exchange_->has_ended ? fail(Errc::Unavailable, "the rest of the response is not read") : Status{};
}

void Reflector::apply(WatchEvent event) {
    const bool in_list = exchange_->doing == Doing::Streaming;
    switch (event.type) {
        case WatchEvent::Type::Added:
        case WatchEvent::Type::Modified:
        case WatchEvent::Type::Deleted: {
            ++exchange_->objects;
            if (!event.object) {
                list_.has_unnamed = list_.has_unnamed || in_list;
                log_unnamed(event.faults);
            } else if (event.type == WatchEvent::Type::Deleted) {
                in_list ? table_.erase_in_list(event.object->id.name) : table_.erase(event.object->id.name);
            } else {
                in_list ? table_.upsert_in_list(std::move(*event.object))
                        : table_.upsert(std::move(*event.object));
            }
            if (!in_list) {
                advance_to(event.resource_version);
            }
            break;
        }
        case WatchEvent::Type::Bookmark:
            if (!in_list) {
                advance_to(event.resource_version);
            } else if (event.initial_events_end) {
                end_streamed_list(event.resource_version);
            }
            break;
        case WatchEvent::Type::Error:
            event.status.message = server_.transport.without_secrets(std::move(event.status.message));
            abandon(trouble_of(event.status));
            break;
        case WatchEvent::Type::Unknown:
            server_.log.warn(described("an event of type '" + event.type_text.substr(0, kTypeShown) +
                                       "' is unknown and was skipped"));
            break;
    }
}

void Reflector::advance_to(const std::string& version) {
    if (is_version(version) && version != version_) {
        version_ = version;
        failures_ = 0;
    }
}

void Reflector::end_streamed_list(const std::string& version) {
    if (!is_version(version)) {
        abandon({.kind = Trouble::Kind::Broken,
                 .name = "decode",
                 .what = "the end of the initial events has no resourceVersion"});
        return;
    }
    list_.version = version;
    complete_list();
    ++watches_;
    exchange_->doing = Doing::Watching;
    exchange_->give_up = exchange_->overdue;
    report_well();
}

void Reflector::complete_list() {
    // An unidentified object may be any of the stored ones, but only of this collection.
    table_.commit_list(list_.has_unnamed && !version_.empty() ? ObjectTable::Missing::Keep
                                                              : ObjectTable::Missing::Erase);
    version_ = list_.version;
    list_ = {};
    newest_only_ = false;
    failures_ = 0;
    ++lists_;
    heard_ = true;
    next_ = Next::Watch;
}

// ---- the response, after its end

void Reflector::finish(Exchange& answer, Time now) {
    if (!answer.trouble) {
        retried_credentials_ = false;
        is_not_served_ = false;
        if (answer.page) {
            finish_page(answer, now);
        } else {
            finish_watch(answer, now);
        }
    }
    if (answer.trouble) {
        on_trouble(answer, now);
    }
    if (answer.doing == Doing::Watching) {
        note_lost(answer, now);
    }
}

void Reflector::finish_page(Exchange& answer, Time now) {
    auto page = answer.page->finish();
    if (!page) {
        answer.trouble = {.kind = Trouble::Kind::Broken, .name = "decode", .what = page.error().what};
        return;
    }
    if (!is_version(list_.version)) {
        list_.version = page->resource_version;
    }
    if (!is_version(list_.version)) {
        answer.trouble = {
            .kind = Trouble::Kind::Broken, .name = "decode", .what = "a list has no resourceVersion"};
        return;
    }
    if (!page->continue_token.empty() &&
        (list_.tokens_seen.size() == kPagesMax ||
         !list_.tokens_seen.insert(std::hash<std::string>{}(page->continue_token)).second)) {
        answer.trouble = {.kind = Trouble::Kind::Expired,
                          .name = "decode",
                          .what = "a list repeats a continue token, or has too many pages"};
        return;
    }
    for (DecodedObject& item : page->items) {
        table_.upsert_in_list(std::move(item));
    }
    if (!page->faults.empty()) {
        list_.has_unnamed = true;
        log_unnamed(page->faults);
    }
    failures_ = 0;
    due_ = now;
    if (!page->continue_token.empty()) {
        list_.continue_token = std::move(page->continue_token);
        return;
    }
    complete_list();
    heard_at_ = now;
    heard_ = false;
    lost_at_ = now;  // until the watch is open
}

void Reflector::finish_watch(Exchange& answer, Time now) {
    if (answer.doing == Doing::Streaming) {
        answer.trouble = {.kind = Trouble::Kind::NoEnd,
                          .name = "no_initial_events_end",
                          .what = "the end of the initial events did not arrive"};
        return;
    }
    failures_ = 0;
    due_ = std::max(now, answer.objects == 0 ? answer.started + kRestartInterval : restarts_.next_at());
}

void Reflector::note_lost(const Exchange& answer, Time now) {
    // A server that opens watches and then breaks them proves nothing about its state.
    const bool followed = answer.head && answer.head->status == kOk &&
                          (answer.objects > 0 || now >= answer.started + kRestartInterval);
    if (followed || !lost_at_) {
        lost_at_ = now;
    }
}

}  // namespace penstock::kube
