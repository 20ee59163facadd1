#include "control/gateway/apply/reconciler.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "control/gateway/compile/routed_prefixes.hpp"
#include "control/log/log.hpp"
#include "drivers/eal/host_facts.hpp"

namespace penstock::gateway {
namespace {

std::string version_text(const rpc::StateVersion& version) {
    return version.number == 0 ? "nothing"
                               : "version " + std::to_string(version.number) + " of " + version.source;
}

}  // namespace

// An accepted message that waits for its publication.
struct Reconciler::Answer {
    rpc::StateUpdate update;
    std::vector<model::ServiceKey> touched;
};

Reconciler::Reconciler(ReconcilerOptions options, IdMap ids)
    : options_(std::move(options)), state_(std::move(ids)) {
    state_.identity = options_.identity;
    state_.identity.addresses.clear();
}

Reconciler::~Reconciler() {
    stop();
}

std::unique_ptr<config::Snapshot> Reconciler::begin(std::optional<LastGood> last_good,
                                                    std::shared_ptr<const drivers::MirroredState> mirror) {
    const std::lock_guard lock(state_mutex_);
    state_.mirror = std::move(mirror);
    take_over(*state_.mirror);
    {
        // Must take effect before the first packet.
        const std::lock_guard inputs_lock(input_mutex_);
        if (inputs_.blocked) {
            take_over(std::move(*std::exchange(inputs_.blocked, std::nullopt)));
            inputs_.since.reset();
        }
    }
    if (last_good) {
        state_.accepted = state_.applied = last_good->state.version;
        state_.asked = std::move(last_good->state.services);
        state_.environment = std::move(last_good->state.environment);
        state_.origin = StateOrigin::LastGood;
        state_.applied_at = std::chrono::steady_clock::now();
        std::vector<model::ServiceKey> all;
        for (const auto& [key, service] : state_.asked) {
            all.push_back(key);
        }
        recompile(all);
        for (const auto& [key, refusal] : state_.compiler.compiled()->refusals) {
            log::get("control").warn("last good state: {}", refusal.why);
        }
    }
    return snapshot();
}

void Reconciler::start(Publish publish, FlowReadings flows) {
    publish_ = std::move(publish);
    flows_ = std::move(flows);
    if (!options_.state_file.empty()) {
        saver_.emplace(options_.state_file);
    }
    thread_ = std::thread([this] { run(); });
}

void Reconciler::stop() {
    {
        const std::lock_guard lock(input_mutex_);
        stopping_ = true;
    }
    input_ready_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
    std::vector<rpc::StateUpdate> unanswered;
    {
        const std::lock_guard lock(input_mutex_);
        unanswered.swap(inputs_.updates);
    }
    for (auto& update : unanswered) {
        update.done(fail(Errc::Unavailable, "the gateway is stopping"));
    }
    saver_.reset();
}

void Reconciler::submit(rpc::StateUpdate update) {
    {
        const std::lock_guard lock(input_mutex_);
        if (!stopping_) {
            inputs_.updates.push_back(std::move(update));
            inputs_.note_arrival();
            input_ready_.notify_one();
            return;
        }
    }
    update.done(fail(Errc::Unavailable, "the gateway is stopping"));
}

void Reconciler::mirrored(std::shared_ptr<const drivers::MirroredState> state, bool forwarding) {
    if (!forwarding) {
        const std::lock_guard lock(state_mutex_);
        state_.mirror = std::move(state);
        return;
    }
    const std::lock_guard lock(input_mutex_);
    inputs_.mirror = std::move(state);
    inputs_.forwarding = true;
    inputs_.note_arrival();
    input_ready_.notify_one();
}

void Reconciler::probed(std::vector<std::pair<model::ServiceKey, SharedHealth>> results) {
    const std::lock_guard lock(input_mutex_);
    inputs_.health.insert(inputs_.health.end(), std::make_move_iterator(results.begin()),
                          std::make_move_iterator(results.end()));
    inputs_.note_arrival();
    input_ready_.notify_one();
}

void Reconciler::block(route::PrefixSet sources) {
    const std::lock_guard lock(input_mutex_);
    inputs_.blocked = std::move(sources);
    inputs_.note_arrival();
    input_ready_.notify_one();
}

void Reconciler::publish_again() {
    const std::lock_guard lock(input_mutex_);
    inputs_.again = true;
    inputs_.note_arrival();
    input_ready_.notify_one();
}

void Reconciler::take_over(route::PrefixSet blocked) {
    blocked_ = blocked.empty() ? nullptr : std::make_shared<const route::PrefixSet>(std::move(blocked));
}

std::optional<std::chrono::steady_clock::time_point> Reconciler::waiting_since() const {
    const std::lock_guard lock(input_mutex_);
    return processing_since_ ? processing_since_ : inputs_.since;
}

void Reconciler::Inputs::note_arrival() {
    since = since.value_or(std::chrono::steady_clock::now());
}

void Reconciler::set_published_listener(Published listener) {
    const std::lock_guard lock(input_mutex_);
    published_listener_ = std::move(listener);
}

void Reconciler::look_at_clock() {
    const std::lock_guard lock(input_mutex_);
    inputs_.clock = true;
    input_ready_.notify_one();
}

void Reconciler::set_identity_listener(std::function<void()> listener) {
    const std::lock_guard lock(input_mutex_);
    identity_listener_ = std::move(listener);
}

void Reconciler::run() {
    for (;;) {
        Inputs inputs;
        {
            std::unique_lock lock(input_mutex_);
            is_waiting_ = true;
            const auto is_awaited = [this] { return stopping_ || inputs_.since || inputs_.clock; };
            if (const auto deadline = keeper_.deadline()) {
                input_ready_.wait_for(lock, *deadline - options_.now(), is_awaited);
            } else {
                input_ready_.wait(lock, is_awaited);
            }
            is_waiting_ = false;
            if (stopping_) {
                return;
            }
            inputs = std::exchange(inputs_, {});
            processing_since_ = inputs.since;
        }
        process(std::move(inputs));
        ++rounds_;
        const std::lock_guard lock(input_mutex_);
        processing_since_.reset();
    }
}

void Reconciler::process(Inputs inputs) {
    std::vector<Answer> answers;
    std::vector<std::pair<rpc::StateUpdate, Error>> rejected;
    std::unique_ptr<config::Snapshot> next;
    IdentityChange change;
    std::optional<Publication> publication;
    {
        const std::lock_guard lock(state_mutex_);
        std::vector<model::ServiceKey> all_touched;
        for (auto& update : inputs.updates) {
            auto touched = accept(update);
            if (touched) {
                all_touched.insert(all_touched.end(), touched->begin(), touched->end());
                answers.push_back({std::move(update), std::move(*touched)});
            } else {
                rejected.emplace_back(std::move(update), std::move(touched.error()));
            }
        }
        for (auto& [key, health] : inputs.health) {
            if (health == nullptr) {
                state_.health.erase(key);
            } else {
                state_.health.insert_or_assign(key, std::move(health));
            }
            all_touched.push_back(key);
        }
        if (inputs.forwarding) {
            state_.mirror = std::move(inputs.mirror);
            change = take_over(*state_.mirror);
        }
        if (!answers.empty() || change.addresses || !inputs.health.empty()) {
            recompile(all_touched);
            publication = Publication{state_.compiler.compiled(), state_.compiler.changes().services,
                                      state_.environment.node_eligible,
                                      !answers.empty() || state_.origin != StateOrigin::None,
                                      state_.environment.vips_withheld};
        }
        const auto now = options_.now();
        const bool drained = keeper_.deadline() && *keeper_.deadline() <= now;
        if (drained) {
            issue(keeper_.wake(state_.compiler.ids(), flows_.flows_of, now));
        }
        const bool blocks = inputs.blocked.has_value();
        if (blocks) {
            take_over(std::move(*inputs.blocked));
        }
        if (publication || inputs.forwarding || drained || blocks || inputs.again) {
            next = snapshot();
        }
    }
    if (next != nullptr) {
        publish_(std::move(next));
    }
    if (!answers.empty()) {
        answer(answers);
        save();
    }
    for (auto& [update, error] : rejected) {
        update.done(std::unexpected(std::move(error)));
    }
    if (publication) {
        const std::lock_guard lock(input_mutex_);
        if (published_listener_) {
            published_listener_(*publication);
        }
    }
    if (change.addresses) {
        log::get("control").info("the twins' addresses have changed");
    }
    if (change.addresses || change.routed_prefixes) {
        const std::lock_guard lock(input_mutex_);
        if (identity_listener_) {
            identity_listener_();
        }
    }
}

// Returns the keys that the message changed. Changes nothing if it returns an error.
Result<std::vector<model::ServiceKey>> Reconciler::accept(rpc::StateUpdate& update) {
    if (update.base && (state_.accepted.number == 0 || *update.base != state_.accepted)) {
        return fail(Errc::Outdated, "the delta builds on " + version_text(*update.base) + ", but " +
                                        version_text(state_.accepted) + " is in force");
    }
    auto touched = update.base ? accept_delta(update) : accept_full(update);
    for (auto& [key, why] : update.invalid) {
        log::get("control").warn("{}", why);
        state_.invalid.insert_or_assign(key, why);
    }
    state_.accepted = update.version;
    return touched;
}

std::vector<model::ServiceKey> Reconciler::accept_full(rpc::StateUpdate& update) {
    std::unordered_set<model::ServiceKey, ServiceKeyHash> named;
    for (const auto& [key, why] : update.invalid) {
        named.insert(key);
    }
    for (const auto& service : update.services) {
        named.insert(service.key);
    }
    std::vector<model::ServiceKey> touched;
    for (const auto& [key, service] : state_.asked) {
        if (!named.contains(key)) {
            touched.push_back(key);
        }
    }
    for (const auto& key : touched) {
        note_affinity_end(key, nullptr);
        state_.asked.erase(key);
    }
    state_.invalid.clear();
    for (auto& service : update.services) {
        model::ServiceKey key = service.key;
        // Service ports that could not be programmed are tried again with every message, and therefore
        // reported again.
        if (put(std::move(service)) || state_.compiler.compiled()->refusals.contains(key)) {
            touched.push_back(std::move(key));
        }
    }
    state_.environment = update.environment.value_or(model::Environment{});
    return touched;
}

std::vector<model::ServiceKey> Reconciler::accept_delta(rpc::StateUpdate& update) {
    std::vector<model::ServiceKey> touched;
    for (const auto& key : update.removed) {
        state_.invalid.erase(key);
        note_affinity_end(key, nullptr);
        if (state_.asked.erase(key) != 0) {
            touched.push_back(key);
        }
    }
    for (auto& service : update.services) {
        state_.invalid.erase(service.key);
        touched.push_back(service.key);
        put(std::move(service));
    }
    if (update.environment) {
        state_.environment = std::move(*update.environment);
    }
    return touched;
}

// Returns true if the service port is new or differs. An equal one keeps its object, by which compile()
// detects that it is unchanged.
bool Reconciler::put(model::Service service) {
    const auto* present = state_.asked.get(service.key);
    if (present != nullptr && **present == service) {
        return false;
    }
    const model::ServiceKey key = service.key;
    note_affinity_end(key, &service);
    state_.asked.insert_or_assign(key, std::make_shared<const model::Service>(std::move(service)));
    return true;
}

// Call before `next` (null: nothing) replaces the key's entry. Messages that are combined into one
// compilation leave no trace of intermediate versions, but a Service with affinity off for a moment
// starts empty (AFF-007).
void Reconciler::note_affinity_end(const model::ServiceKey& key, const model::Service* next) {
    const auto* present = state_.asked.get(key);
    if (present != nullptr && (*present)->affinity_timeout_s != 0 &&
        (next == nullptr || !keeps_affinity(**present, *next))) {
        affinity_ended_.push_back(key);
    }
}

// Updates routes, source addresses and the identity from the state of Linux.
Reconciler::IdentityChange Reconciler::take_over(const drivers::MirroredState& mirror) {
    routes_ = route::RouteTable::build(mirror.routes, mirror.neighbours, mirror.addresses, mirror.ports,
                                       mirror.vips);
    nat::SnatConfig snat{
        .addresses = snat_addresses(
            options_.snat_addresses, options_.twins, mirror.addresses,
            options_.snat_addresses.empty() ? std::vector<IpAddr>{} : drivers::host_addresses()),
        .ports = options_.snat_ports,
        .host_ephemeral = options_.host_ephemeral};
    if (snat != *snat_) {
        snat_ = std::make_shared<const nat::SnatConfig>(std::move(snat));
    }
    const auto replace = [](auto& held, auto now) {
        const bool differs = held != now;
        held = std::move(now);
        return differs;
    };
    model::GatewayIdentity& identity = state_.identity;
    IdentityChange change{.addresses =
                              replace(identity.addresses, port_addresses(options_.twins, mirror.addresses))};
    // In mode node the list is not needed: all Pods can be reached.
    if (identity.mode == model::GatewayMode::External) {
        change.routed_prefixes = replace(identity.routed_prefixes, routed_prefixes(mirror.routes));
    }
    return change;
}

void Reconciler::recompile(std::span<const model::ServiceKey> touched) {
    follow_pod_cidrs();
    state_.compiler.run({state_.asked, state_.environment.node_ports, state_.identity.addresses,
                         affinity_ended_, state_.health},
                        touched);
    affinity_ended_.clear();
    issue(keeper_.follow(state_.compiler.changes(), *state_.compiler.compiled(), state_.compiler.ids(),
                         flows_.flows_of, options_.now()));
    follow_idle_limits();
}

void Reconciler::follow_pod_cidrs() {
    if (state_.environment.pod_cidrs == pod_cidrs_) {
        return;
    }
    // Before the first Service no flow depends on other Pod CIDRs.
    const bool is_first = state_.compiler.ids().services.size() == 0;
    pod_cidrs_ = state_.environment.pod_cidrs;
    cluster_clients_ = std::make_shared<const lb::ClusterClients>(
        is_first ? lb::ClusterClients(pod_cidrs_) : cluster_clients_->changed_to(pod_cidrs_));
}

// A removed Service leaves its limit to its remaining flows. A Service that gets its id sets its own limit.
void Reconciler::follow_idle_limits() {
    std::shared_ptr<conn::IdleLimits> next;
    for (const auto& key : state_.compiler.changes().services) {
        const auto* programmed = state_.compiler.compiled()->services.get(key);
        if (programmed == nullptr) {
            continue;
        }
        const ServiceId id = programmed->service->id;
        const uint32_t seconds = programmed->desired->idle_timeout_s;
        if ((next == nullptr ? *idle_limits_ : *next).of(id) == seconds) {
            continue;
        }
        if (next == nullptr) {
            next = std::make_shared<conn::IdleLimits>(*idle_limits_);
        }
        if (id.value >= next->seconds.size()) {
            next->seconds.resize(id.value + 1);
        }
        next->seconds[id.value] = seconds;
    }
    if (next != nullptr) {
        idle_limits_ = std::move(next);
    }
}

// Appends the orders to those that some worker has not finished.
void Reconciler::issue(std::vector<conn::FlowOrder> orders) {
    const uint64_t done = flows_.orders_done ? flows_.orders_done() : 0;
    const conn::FlowOrders& former = *orders_;
    const uint64_t first = std::clamp(done + 1, former.first, former.last() + 1);
    if (orders.empty() && first == former.first) {
        return;
    }
    auto next = std::make_shared<conn::FlowOrders>();
    next->first = first;
    next->orders.assign(former.orders.begin() + static_cast<std::ptrdiff_t>(first - former.first),
                        former.orders.end());
    next->orders.insert(next->orders.end(), orders.begin(), orders.end());
    orders_ = std::move(next);
}

std::unique_ptr<config::Snapshot> Reconciler::snapshot() const {
    auto next = std::make_unique<config::Snapshot>();
    next->services = state_.compiler.compiled()->table;
    next->routes = routes_;
    next->snat = snat_;
    next->cluster_clients = cluster_clients_;
    next->packets = options_.packets;
    next->rejects_closed_vip_ports = state_.environment.rejects_closed_vip_ports;
    next->flow_orders = orders_;
    next->idle_limits = idle_limits_;
    next->blocked_sources = blocked_;
    return next;
}

void Reconciler::answer(std::vector<Answer>& answers) {
    using Kind = rpc::ServiceOutcome::Kind;
    const auto now = std::chrono::steady_clock::now();
    std::vector<rpc::UpdateResult> results;
    {
        const std::lock_guard lock(state_mutex_);
        state_.applied = state_.accepted;
        state_.origin = StateOrigin::Stream;
        state_.applied_at = now;
        for (const Answer& waiting : answers) {
            rpc::UpdateResult& result = results.emplace_back();
            for (const auto& key : waiting.touched) {
                if (const auto* refusal = state_.compiler.compiled()->refusals.get(key)) {
                    result.services.push_back({key, Kind::Refused, *refusal});
                } else {
                    result.services.push_back(
                        {key, state_.asked.contains(key) ? Kind::Applied : Kind::Removed, {}});
                }
            }
            result.apply_us = static_cast<uint64_t>(
                std::chrono::duration_cast<std::chrono::microseconds>(now - waiting.update.received).count());
        }
    }
    auto& logger = log::get("control");
    for (size_t i = 0; i < answers.size(); ++i) {
        const auto& version = answers[i].update.version;
        const bool is_delta = answers[i].update.base.has_value();  // up to a thousand per second
        logger.log(is_delta ? spdlog::level::debug : spdlog::level::info,
                   "applied {} ({}): {} service ports changed, {} us", version_text(version),
                   is_delta ? "delta" : "full", results[i].services.size(), results[i].apply_us);
        for (const auto& outcome : results[i].services) {
            if (outcome.kind == Kind::Refused) {
                logger.warn("refused: {}", outcome.refusal.why);
            }
        }
        answers[i].update.done(std::move(results[i]));
    }
}

std::optional<SaveStatus> Reconciler::saving() const {
    return saver_ ? std::optional(saver_->status()) : std::nullopt;
}

void Reconciler::save() {
    if (!saver_) {
        return;
    }
    StateInForce state;
    {
        const std::lock_guard lock(state_mutex_);
        state = {.version = state_.applied,
                 .compiled = state_.compiler.compiled(),
                 .environment = state_.environment};
    }
    saver_->save(std::move(state));
}

}  // namespace penstock::gateway
