// SPDX-License-Identifier: Apache-2.0
// Two or three writers of addresses on one API server with optimistic concurrency. The network delays
// requests, loses them and their responses. Processes are frozen, also between the test of their leadership
// and the request that follows it, and restarted. Services are created and deleted.
//
// - At most one process is the leader, by the true time.
// - No address is in the status of two Services at any time.
// - Nothing but the status of Services is written, and nothing without a version.
// - In the end each Service has an address, and nothing more is written.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/sync/addresses/address_writer.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::sync {
namespace address_writer_property_test {

using namespace std::chrono_literals;
using Time = kube::LeaderElector::Time;
using Duration = kube::LeaderElector::Clock::duration;
using simdjson::dom::element;

constexpr std::chrono::milliseconds kStep{100};
constexpr std::string_view kPrefix = "/api/v1/namespaces/default/services/";

std::string text_in(const element& object, const char* key) {
    std::string_view text;
    return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

// The state of an API server: one Lease, Services, and the history that watches read.
class ModelCluster {
 public:
    struct Response {
        int status = 0;
        std::string body;
    };
    struct Event {
        Time at;
        std::string name;
        std::string json;  // "": deleted
    };

    Response respond(const kube::Request& request, Time now) {
        if (request.target.contains("/leases")) {
            return respond_lease(request);
        }
        return respond_status(request, now);
    }
    void create(const std::string& name, Time now) {
        Service& service = services_[name];
        service = {.created = std::to_string(1000 + revision_)};
        publish(name, now);
    }
    void erase(const std::string& name, Time now) {
        if (services_.erase(name) != 0) {
            ++revision_;
            events_.push_back({now, name, ""});
        }
    }

    // The addresses of more than one Service.
    [[nodiscard]] std::set<std::string> shared() const {
        std::set<std::string> seen;
        std::set<std::string> twice;
        for (const auto& [name, service] : services_) {
            if (!service.ip.empty() && !seen.insert(service.ip).second) {
                twice.insert(service.ip);
            }
        }
        return twice;
    }
    [[nodiscard]] size_t without_address() const {
        return static_cast<size_t>(
            std::ranges::count_if(services_, [](const auto& service) { return service.second.ip.empty(); }));
    }
    [[nodiscard]] bool has(const std::string& name) const { return services_.contains(name); }
    [[nodiscard]] const std::vector<Event>& events() const { return events_; }
    [[nodiscard]] uint64_t status_writes() const { return status_writes_; }
    [[nodiscard]] uint64_t late_writes() const { return conflicts_; }

 private:
    struct Service {
        uint64_t version = 0;
        std::string created;  // part of the name of its UID
        std::string ip;
        std::map<std::string, std::string> allocated;  // fields of the condition; empty: absent
    };

    void publish(const std::string& name, Time now) {
        services_[name].version = ++revision_;
        events_.push_back({now, name, text_of(name)});
    }
    [[nodiscard]] std::string text_of(const std::string& name) const {
        const Service& service = services_.at(name);
        std::string json = R"({"kind":"Service","metadata":{"name":")" + name +
                           R"(","namespace":"default","uid":"u)" + service.created +
                           R"(","resourceVersion":")" + std::to_string(service.version) +
                           R"("},"spec":{"type":"LoadBalancer","loadBalancerClass":"penstock.io/gateway",)"
                           R"("clusterIP":"10.96.0.1","ipFamilies":["IPv4"],"ports":[{"port":80}]},)"
                           R"("status":{)";
        if (!service.ip.empty()) {
            json += R"("loadBalancer":{"ingress":[{"ip":")" + service.ip +
                    R"(","ipMode":"VIP","ports":[{"port":80,"protocol":"TCP"}]}]},)";
        }
        json += "\"conditions\":[";
        if (!service.allocated.empty()) {
            json += '{';
            for (const auto& [key, value] : service.allocated) {
                json += (json.back() == '{' ? "\"" : ",\"") + key + "\":\"" + value + "\"";
            }
            json += '}';
        }
        return json + "]}}";
    }
    [[nodiscard]] Response lease_response(int status) const {
        return {status, R"({"metadata":{"resourceVersion":")" + std::to_string(lease_version_) +
                            R"("},"spec":{"holderIdentity":")" + holder_ +
                            R"(","leaseDurationSeconds":15,"renewTime":")" + renewed_ + "\"}}"};
    }
    Response respond_lease(const kube::Request& request) {
        if (request.method == "GET") {
            return lease_version_ == 0 ? Response{404, "{}"} : lease_response(200);
        }
        simdjson::dom::parser parser;
        const element root = parser.parse(simdjson::padded_string(request.body));
        if (request.method == "POST"
                ? lease_version_ != 0
                : text_in(root["metadata"], "resourceVersion") != std::to_string(lease_version_)) {
            return {409, "{}"};
        }
        lease_version_ = ++revision_;
        holder_ = text_in(root["spec"], "holderIdentity");
        renewed_ = text_in(root["spec"], "renewTime");
        return lease_response(200);
    }
    Response respond_status(const kube::Request& request, Time now) {
        EXPECT_TRUE(request.method == "PATCH" && request.target.starts_with(kPrefix) &&
                    request.target.ends_with("/status"))
            << request.method << " " << request.target;
        std::string name = request.target.substr(kPrefix.size());
        name = name.substr(0, name.find('/'));
        const auto found = services_.find(name);
        if (found == services_.end()) {
            return {404, "{}"};
        }
        simdjson::dom::parser parser;
        const element root = parser.parse(simdjson::padded_string(request.body));
        const std::string version = text_in(root["metadata"], "resourceVersion");
        EXPECT_NE(version, "") << request.body;
        if (version != std::to_string(found->second.version)) {
            ++conflicts_;
            return {409, "{}"};
        }
        apply(root["status"], found->second);
        ++status_writes_;
        publish(name, now);
        return {200, text_of(name)};
    }
    static void apply(const element& status, Service& service) {
        simdjson::dom::array list;
        if (status["loadBalancer"]["ingress"].get(list) == simdjson::SUCCESS) {
            service.ip = list.size() == 0 ? "" : text_in(list.at(0), "ip");
        }
        if (status["conditions"].get(list) == simdjson::SUCCESS) {
            for (const element condition : list) {
                EXPECT_EQ(text_in(condition, "type"), kube::kAllocatedCondition);
                for (const char* key : {"type", "status", "reason", "message"}) {
                    service.allocated[key] = text_in(condition, key);
                }
            }
        }
    }

    uint64_t revision_ = 0;
    uint64_t lease_version_ = 0;  // 0: there is no Lease
    std::string holder_, renewed_;
    std::map<std::string, Service> services_;
    std::vector<Event> events_;
    uint64_t status_writes_ = 0, conflicts_ = 0;
};

// A process: its view of the cluster, its requests, its clock.
class Process final : public kube::Transport {
 public:
    struct Sent {
        Time at;
        uint64_t id;
        kube::Request request;
    };

    Process(std::string identity, test::Prng& random) : random_(random) {
        kube::Decoder decoder;
        const auto pool = kube::decode_object(
            decoder, kube::ObjectKind::AddressPool,
            R"({"metadata":{"name":"a","resourceVersion":"1"},"spec":{"addresses":["203.0.113.0/28"]}})");
        kube::Changes changes;
        changes.pools["a"] = std::get<kube::AddressPoolPtr>(*pool->object);
        changes.pools_listed = changes.namespaces_listed = true;
        const AddressWriter::Calls calls{
            .service = [this](const kube::ObjectName& name) -> std::optional<kube::ServiceVersion> {
                const auto found = store_.find(name);
                return found == store_.end() ? std::nullopt : std::optional(found->second);
            },
            .pool = [](const std::string&) { return std::optional<kube::PoolVersion>(); },
            .relist = [this] { relist_ = Relist::Wanted; },
            .is_relisted = [this] { return relist_ == Relist::None; },
            .clock = [this] { return local_; },
            .report = [](const kube::Event&) {},
            .wake = [] {}};
        writer_ = std::make_unique<AddressWriter>(
            AddressWriter::Settings{
                .assignment = {},
                .election = {.lease = {"penstock", "sync"}, .identity = std::move(identity)}},
            *this, limiter_, calls, [this] { return static_cast<double>(random_.below(1000)) / 1000; });
        writer_->note(changes);
    }

    RequestId start(kube::Request request, kube::ResponseHandler& handler) override {
        // Frozen after the test of leadership and before the request is sent.
        if (freezes && request.method == "PATCH" && random_.one_in(15)) {
            local_ += std::chrono::seconds(random_.between(1, 60));
        }
        const uint64_t id = next_id_++;
        handlers_[id] = {&handler, local_ + request.timeout};
        sent.push_back({local_, id, std::move(request)});
        return RequestId{id};
    }
    void cancel(RequestId id) override { handlers_.erase(id.value); }
    void credentials_rejected() override {}
    [[nodiscard]] std::string without_secrets(std::string text) const override { return text; }

    void receive(uint64_t id, const ModelCluster::Response& response) {
        if (const auto found = handlers_.extract(id)) {
            kube::ResponseHandler& handler = *found.mapped().first;
            handler.on_head({.status = response.status, .retry_after = {}, .content_type = {}});
            handler.on_body(response.body);
            handler.on_end(std::nullopt);
        }
    }
    // One round of its loop.
    void run(const ModelCluster& cluster, Time now) {
        local_ = now;
        for (auto each = handlers_.begin(); each != handlers_.end();) {
            const auto [handler, deadline] = each->second;
            if (now < deadline) {
                ++each;
                continue;
            }
            each = handlers_.erase(each);
            handler->on_end(kube::TransportError{kube::TransportError::Kind::Timeout, "no response"});
        }
        follow(cluster, now);
        writer_->advance(now, kube::WallTime(1'700'000'000s) + (now - Time{}));
        frozen_until = std::max(frozen_until, local_);
    }
    // As of the last run().
    [[nodiscard]] bool is_leader() const { return writer_->status().writes->leadership.is_leader; }

    std::vector<Sent> sent;  // not yet taken by the network
    Time frozen_until{};
    Duration watch_lag{};
    bool freezes = true;

 private:
    enum class Relist : uint8_t { None, Wanted, Listed };

    // The watch is behind by `watch_lag`. A list shows the state at the moment when the server reads it, and
    // arrives after the same time.
    void follow(const ModelCluster& cluster, Time now) {
        kube::Changes changes;
        if (relist_ == Relist::Wanted) {
            relist_ = Relist::Listed;
            list_end_ = cluster.events().size();
            list_at_ = now + watch_lag;
        } else if (relist_ == Relist::Listed && now >= list_at_) {
            relist_ = Relist::None;
            take(cluster, list_end_, changes);
        }
        size_t end = next_event_;
        while (end < cluster.events().size() && cluster.events()[end].at + watch_lag <= now) {
            ++end;
        }
        take(cluster, end, changes);
        if (!changes.is_empty()) {
            writer_->note(changes);
        }
    }
    void take(const ModelCluster& cluster, size_t end, kube::Changes& changes) {
        for (; next_event_ < end; ++next_event_) {
            const ModelCluster::Event& event = cluster.events()[next_event_];
            const kube::ObjectName name{"default", event.name};
            if (event.json.empty()) {
                store_.erase(name);
                changes.services[name] = nullptr;
                continue;
            }
            const auto object = kube::decode_object(decoder_, kube::ObjectKind::Service, event.json);
            ASSERT_TRUE(object && object->object) << event.json;
            const auto service = std::get<kube::ServicePtr>(*object->object);
            store_[name] = {service, object->resource_version};
            changes.services[name] = service;
        }
    }

    test::Prng& random_;
    kube::WriteLimiter limiter_;
    kube::Decoder decoder_;
    Time local_{};
    uint64_t next_id_ = 1;
    std::map<uint64_t, std::pair<kube::ResponseHandler*, Time>> handlers_;
    std::map<kube::ObjectName, kube::ServiceVersion> store_;
    size_t next_event_ = 0;
    Relist relist_ = Relist::None;
    size_t list_end_ = 0;
    Time list_at_{};
    std::unique_ptr<AddressWriter> writer_;  // last: it cancels its requests
};

class World {
 public:
    explicit World(uint64_t seed) : random_(seed) {
        for (size_t i = 0; i < 2 + random_.below(2); ++i) {
            processes_.push_back(nullptr);
            restart(i);
        }
    }

    void step(bool calm) {
        now_ += kStep;
        if (!calm) {
            change_services();
        }
        for (size_t i = 0; i < processes_.size(); ++i) {
            Process& process = *processes_[i];
            process.freezes = !calm;
            if (now_ < process.frozen_until) {
                continue;
            }
            if (!calm && random_.one_in(3'000)) {
                restart(i);
                continue;
            }
            if (!calm && random_.one_in(1'500)) {
                process.frozen_until = now_ + std::chrono::seconds(random_.below(40));
                continue;
            }
            process.watch_lag = std::chrono::milliseconds(random_.below(calm ? 200 : 3'000));
            process.run(cluster_, now_);
            for (Process::Sent& sent : process.sent) {
                send(i, std::move(sent), calm);
            }
            process.sent.clear();
        }
        deliver(calm);
    }

    [[nodiscard]] ModelCluster& cluster() { return cluster_; }
    [[nodiscard]] size_t leaders() const {
        return static_cast<size_t>(std::ranges::count_if(processes_, [this](const auto& process) {
            return now_ >= process->frozen_until && process->is_leader();
        }));
    }

 private:
    struct Message {
        Time at;
        size_t process = 0;
        uint64_t generation = 0;
        uint64_t id = 0;
        kube::Request request;
        std::optional<ModelCluster::Response> response;  // on its way back
    };

    void restart(size_t i) {
        processes_[i] = std::make_unique<Process>("p" + std::to_string(++starts_), random_);
        generations_.resize(processes_.size());
        generations_[i] = starts_;
    }
    // A pool of 16 addresses, and at most 12 Services.
    void change_services() {
        if (random_.one_in(25)) {
            const std::string name = "s" + std::to_string(random_.below(12));
            if (cluster_.has(name)) {
                cluster_.erase(name, now_);
            } else {
                cluster_.create(name, now_);
            }
        }
    }
    void send(size_t process, Process::Sent sent, bool calm) {
        if (!calm && random_.one_in(20)) {
            return;  // lost
        }
        auto delay = std::chrono::milliseconds(random_.below(calm ? 50 : 1'500));
        if (!calm && random_.one_in(20)) {
            delay = std::chrono::seconds(random_.below(60));  // the network holds it
        }
        messages_.push_back({std::max(sent.at, now_) + delay, process, generations_[process], sent.id,
                             std::move(sent.request), std::nullopt});
    }
    void deliver(bool calm) {
        for (auto message = messages_.begin(); message != messages_.end();) {
            if (message->at > now_) {
                ++message;
                continue;
            }
            const bool is_current = generations_[message->process] == message->generation;
            if (!message->response) {
                message->response = !calm && random_.one_in(20) ? ModelCluster::Response{500, "{}"}
                                                                : cluster_.respond(message->request, now_);
                message->at = now_ + std::chrono::milliseconds(random_.below(calm ? 50 : 1'500));
                if (!calm && random_.one_in(15)) {
                    message = messages_.erase(message);  // the response is lost
                }
                continue;
            }
            Process& process = *processes_[message->process];
            if (is_current && now_ < process.frozen_until) {
                ++message;  // waits in the socket
                continue;
            }
            if (is_current) {
                process.receive(message->id, *message->response);
            }
            message = messages_.erase(message);
        }
    }

    test::Prng random_;
    Time now_{1h};
    ModelCluster cluster_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::vector<uint64_t> generations_;
    uint64_t starts_ = 0;
    std::deque<Message> messages_;
};

TEST(AddressWriterProperty, NoAddressIsGivenTwice_LB008_LEASE002_LEASE004_STATUS001_STATUS004) {
    const uint64_t seed = test::seed();
    uint64_t written = 0;
    uint64_t refused = 0;
    for (uint64_t run = 0; run < 30; ++run) {
        SCOPED_TRACE("PENSTOCK_SEED=" + std::to_string(seed) + ", run " + std::to_string(run));
        World world(seed + run);
        for (int step = 0; step < 6'000; ++step) {
            world.step(false);
            ASSERT_LE(world.leaders(), 1u);
            ASSERT_EQ(world.cluster().shared(), std::set<std::string>{}) << "step " << step;
        }
        for (int step = 0; step < 1'800; ++step) {
            world.step(true);
            ASSERT_EQ(world.cluster().shared(), std::set<std::string>{}) << "step " << step;
        }
        EXPECT_EQ(world.leaders(), 1u);
        EXPECT_EQ(world.cluster().without_address(), 0u);
        written += world.cluster().status_writes();
        refused += world.cluster().late_writes();
        const uint64_t before = world.cluster().status_writes() + world.cluster().late_writes();
        for (int step = 0; step < 600; ++step) {
            world.step(true);
        }
        EXPECT_EQ(world.cluster().status_writes() + world.cluster().late_writes(), before)
            << "needless writes";
    }
    EXPECT_GT(written, 300u);
    EXPECT_GT(refused, 30u) << "late writes must occur";
}

}  // namespace address_writer_property_test
}  // namespace penstock::sync
