// SPDX-License-Identifier: Apache-2.0
// A process with an AddressWriter, between a ModelCluster and a network that delays and loses messages. The
// view of the process lags behind the cluster; the test decides when changes are delivered. One thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/sync/addresses/address_writer.hpp"
#include "tests/support/model_cluster.hpp"

namespace penstock::test {

// Requests on their way to the cluster, and responses on their way back. Requests outlive their process, and
// are executed also after the client's timeout or cancel().
class ModelNetwork {
 public:
    using Time = std::chrono::steady_clock::time_point;
    struct Path {
        std::chrono::milliseconds there{1};
        std::chrono::milliseconds back{1};
        bool is_response_lost = false;
    };

    explicit ModelNetwork(ModelCluster& cluster) : cluster_(cluster) {}

    kube::Transport::RequestId start(const void* owner, kube::Request request, kube::ResponseHandler& handler,
                                     Time now) {
        const Path way = path(request);
        const Time timeout = now + request.timeout;
        const kube::Transport::RequestId id{next_id_++};
        flights_.push_back({id, owner, std::move(request), &handler, now + way.there, timeout, way, {}, {}});
        return id;
    }
    void cancel(kube::Transport::RequestId id) {
        for (Flight& each : flights_) {
            if (each.id == id) {
                each.handler = nullptr;
            }
        }
    }
    // Executes the requests that have arrived, in the order of arrival.
    void execute(Time now) {
        std::ranges::stable_sort(flights_, {}, &Flight::arrives);
        for (Flight& each : flights_) {
            if (!each.reply && each.arrives <= now) {
                each.reply = cluster_.execute(each.request);
                each.returns = each.way.is_response_lost ? Time::max() : now + each.way.back;
            }
        }
        std::erase_if(flights_, [](const Flight& each) { return each.reply && each.handler == nullptr; });
    }
    // Requests that their clients do not wait for any more arrive now.
    void hasten(Time now) {
        for (Flight& each : flights_) {
            if (!each.reply && each.timeout <= now) {
                each.arrives = std::min(each.arrives, now);
            }
        }
    }
    // Delivers responses and timeouts to one process.
    void respond(const void* owner, Time now) {
        for (size_t i = 0; i < flights_.size(); ++i) {
            if (flights_[i].owner != owner || flights_[i].handler == nullptr) {
                continue;
            }
            if (flights_[i].reply && flights_[i].returns <= std::min(now, flights_[i].timeout)) {
                const auto reply = *flights_[i].reply;
                kube::ResponseHandler& handler = *std::exchange(flights_[i].handler, nullptr);
                handler.on_head(
                    {.status = reply.status, .retry_after = {}, .content_type = "application/json"});
                handler.on_body(reply.body);
                handler.on_end(std::nullopt);
            } else if (flights_[i].timeout <= now) {
                std::exchange(flights_[i].handler, nullptr)
                    ->on_end(kube::TransportError{kube::TransportError::Kind::Timeout, "timeout"});
            }
        }
    }

    std::function<Path(const kube::Request&)> path = [](const kube::Request&) { return Path(); };

 private:
    struct Flight {
        kube::Transport::RequestId id;
        const void* owner;
        kube::Request request;
        kube::ResponseHandler* handler;  // null: no response is expected any more
        Time arrives;
        Time timeout;
        Path way;
        std::optional<ModelCluster::Reply> reply;  // once executed
        Time returns;
    };
    ModelCluster& cluster_;
    std::vector<Flight> flights_;
    uint64_t next_id_ = 1;
};

class ModelWriter final : private kube::Transport {
 public:
    using Time = ModelNetwork::Time;

    // `now` is the clock of the test. Nothing is known before deliver().
    ModelWriter(ModelCluster& cluster, ModelNetwork& network, const Time& now, std::string identity)
        : identity_(std::move(identity)), cluster_(cluster), network_(network), now_(now) {
        kube::Changes listed;
        listed.pools_listed = listed.namespaces_listed = true;
        changes_.merge(std::move(listed));
    }

    // The watch delivers the next `count` changes.
    void deliver(size_t count) {
        const size_t end = seen_ + std::min(count, cluster_.history().size() - seen_);
        for (; seen_ < end; ++seen_) {
            apply(cluster_.history()[seen_]);
        }
    }
    void deliver_all() { deliver(cluster_.history().size()); }

    // The object of a Service cannot be decoded; these are the addresses in its status.
    void hold(const kube::ObjectName& name, std::vector<IpAddr> addresses) {
        changes_.held_addresses.insert_or_assign(name, std::move(addresses));
    }

    // A list shows the state of the time at which it began.
    void begin_list() { list_ = cluster_.history().size(); }
    [[nodiscard]] bool is_listing() const { return list_.has_value(); }
    void finish_list() {
        if (const auto end = std::exchange(list_, std::nullopt)) {
            deliver(*end - std::min(*end, seen_));
            is_relisted_ = true;
        }
    }
    [[nodiscard]] bool wants_list() const { return !is_relisted_; }
    [[nodiscard]] int relists() const { return relists_; }

    // One round of the source thread.
    void advance() {
        network_.respond(this, now_);
        writer.note(std::exchange(changes_, {}));
        writer.advance(now_, kube::WallTime(std::chrono::seconds(1'700'000'000)) + now_.time_since_epoch());
    }

    // The gateways of other processes are on the board.
    bool has_other_gateways = true;

    [[nodiscard]] std::string phase() const { return writer.status().phase; }
    [[nodiscard]] const std::string& identity() const { return identity_; }
    // Reports with this reason, as "NAME: MESSAGE".
    [[nodiscard]] std::vector<std::string> events(std::string_view reason) const {
        std::vector<std::string> texts;
        for (const kube::Event& event : events_) {
            if (event.reason == reason) {
                texts.push_back(event.object.name + ": " + event.message);
            }
        }
        return texts;
    }
    [[nodiscard]] size_t event_count() const { return events_.size(); }

 private:
    RequestId start(kube::Request request, kube::ResponseHandler& handler) override {
        if (request.target.ends_with("/status")) {
            EXPECT_EQ(cluster_.holder(), identity_) << "a follower writes " << request.target;
        }
        return network_.start(this, std::move(request), handler, now_);
    }
    void cancel(RequestId id) override { network_.cancel(id); }
    void credentials_rejected() override {}
    [[nodiscard]] std::string without_secrets(std::string text) const override { return text; }

    void apply(const ModelCluster::Change& change) {
        const std::string version = std::to_string(change.version);
        if (change.service) {
            changes_.services[*change.service] = change.service_value;
            if (change.service_value == nullptr) {
                services_.erase(*change.service);
            } else {
                services_[*change.service] = {change.service_value, version};
            }
        } else {
            changes_.pools[change.pool] = change.pool_value;
            if (change.pool_value == nullptr) {
                pools_.erase(change.pool);
            } else {
                pools_[change.pool] = {change.pool_value, version};
            }
        }
    }
    sync::AddressWriter::Calls calls() {
        return {.service = [this](const kube::ObjectName& name) { return find(services_, name); },
                .pool = [this](const std::string& name) { return find(pools_, name); },
                .relist =
                    [this] {
                        ++relists_;
                        is_relisted_ = false;
                        list_.reset();
                    },
                .is_relisted = [this] { return is_relisted_; },
                .clock = [this] { return now_; },
                .report = [this](kube::Event event) { events_.push_back(std::move(event)); },
                .wake = [] {},
                .has_other_gateways = [this] { return has_other_gateways; }};
    }
    template <typename Map>
    static std::optional<typename Map::mapped_type> find(const Map& map, const typename Map::key_type& name) {
        const auto found = map.find(name);
        return found == map.end() ? std::nullopt : std::optional(found->second);
    }

    const std::string identity_;
    ModelCluster& cluster_;
    ModelNetwork& network_;
    const Time& now_;
    kube::WriteLimiter limiter_;
    std::map<kube::ObjectName, kube::ServiceVersion> services_;
    std::map<std::string, kube::PoolVersion> pools_;
    kube::Changes changes_;
    size_t seen_ = 0;             // of the cluster's history
    std::optional<size_t> list_;  // end of the list in progress
    bool is_relisted_ = true;
    int relists_ = 0;
    std::vector<kube::Event> events_;

 public:
    sync::AddressWriter writer{{.assignment = {},
                                .election = {.lease = {.namespace_name = "penstock", .name = "penstock-sync"},
                                             .identity = identity_}},
                               *this,
                               limiter_,
                               calls(),
                               [] { return 0.5; }};
};

}  // namespace penstock::test
