// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/reconciler.hpp"

#include <utility>

#include "control/gateway/compile/routed_prefixes.hpp"
#include "control/gateway/shares/share_strays.hpp"
#include "control/log/log.hpp"
#include "drivers/eal/host_facts.hpp"

namespace penstock::gateway {

// An accepted message that waits for its publication.
struct Reconciler::Answer {
    rpc::StateUpdate update;
    std::vector<model::ServiceKey> touched;
};

Reconciler::Reconciler(ReconcilerOptions options, IdMap ids)
    : options_(std::move(options)), state_(std::move(ids)), acceptance_(state_), parts_(options_.snapshots) {
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
    {
        // Must take effect before the first packet. It is presumed that other gateways take strays.
        const std::lock_guard inputs_lock(input_mutex_);
        if (inputs_.blocked) {
            parts_.block(std::move(*std::exchange(inputs_.blocked, std::nullopt)));
            inputs_.since.reset();
        }
        if (inputs_.shares) {
            parts_.forward_strays(strays_of(inputs_.shares->get(), [](const std::string&) { return true; }));
            take_over(std::move(*std::exchange(inputs_.shares, std::nullopt)));
            inputs_.since.reset();
        }
    }
    take_over(*state_.mirror);
    if (last_good) {
        state_.accepted = state_.applied = last_good->state.version;
        state_.asked = std::move(last_good->state.services);
        state_.environment = std::move(last_good->state.environment);
        state_.origin = StateOrigin::LastGood;
        state_.applied_at = std::chrono::steady_clock::now();
        state_.applied_on = std::chrono::system_clock::now();
        std::vector<model::ServiceKey> all;
        for (const auto& [key, service] : state_.asked) {
            all.push_back(key);
        }
        recompile(all);
        for (const auto& [key, refusal] : state_.compiler.compiled()->refusals) {
            log::get("control").warn("last good state: {}", refusal.why);
        }
    }
    {
        const std::lock_guard inputs_lock(input_mutex_);
        in_force_ = Publication{state_.compiler.compiled(),
                                {},
                                state_.environment.node_eligible,
                                state_.origin != StateOrigin::None,
                                state_.environment.vips_withheld};
    }
    return snapshot();
}

Publication Reconciler::in_force() const {
    const std::lock_guard lock(input_mutex_);
    return in_force_;
}

BackendId Reconciler::keep_leaving(const adopt::LeavingFlows& flows) {
    const std::lock_guard lock(state_mutex_);
    const auto& [address, port] = flows.endpoint;
    const model::ServiceKey* key = state_.compiler.ids().services.key_of(flows.service);
    const Programmed* programmed = key == nullptr ? nullptr : state_.compiler.compiled()->services.get(*key);
    // Tables of a former process are not trusted.
    if (programmed == nullptr || address.is_unspecified() || address.is_multicast() || port == 0) {
        return {};
    }
    const auto id =
        state_.compiler.number_of_former({flows.service, address, port, programmed->desired->uid});
    return id && keeper_.inherit(*key, flows.endpoint, flows.frontend, *id, options_.now()) ? *id
                                                                                            : BackendId{};
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

template <typename Change>
void Reconciler::put_in(const Change& change) {
    const std::lock_guard lock(input_mutex_);
    change(inputs_);
    inputs_.note_arrival();
    input_ready_.notify_one();
}

void Reconciler::block(route::PrefixSet sources) {
    put_in([&](Inputs& inputs) { inputs.blocked = std::move(sources); });
}

void Reconciler::set_shares(std::shared_ptr<const GatewayShares> shares) {
    put_in([&](Inputs& inputs) { inputs.shares.emplace(std::move(shares)); });
}

void Reconciler::forward_strays(std::shared_ptr<const shares::Strays> strays) {
    put_in([&](Inputs& inputs) { inputs.strays.emplace(std::move(strays)); });
}

void Reconciler::answer_for(std::shared_ptr<const route::LinkVips> vips) {
    put_in([&](Inputs& inputs) { inputs.link_vips.emplace(std::move(vips)); });
}

std::shared_ptr<const route::LinkVips> Reconciler::answered() const {
    const std::lock_guard lock(input_mutex_);
    return answered_;
}

void Reconciler::set_answered_listener(std::function<void()> listener) {
    const std::lock_guard lock(input_mutex_);
    answered_listener_ = std::move(listener);
}

void Reconciler::publish_again() {
    put_in([](Inputs& inputs) { inputs.again = true; });
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
            auto touched = acceptance_.accept(update, state_.compiler.compiled()->refusals);
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
        if (inputs.shares) {
            take_over(std::move(*inputs.shares));
            follow_linux(*state_.mirror);
        }
        if (!answers.empty() || change.addresses || !inputs.health.empty() || inputs.shares) {
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
        if (inputs.blocked) {
            parts_.block(std::move(*inputs.blocked));
        }
        if (inputs.link_vips) {
            parts_.answer_for(*inputs.link_vips);
        }
        if (inputs.strays) {
            parts_.forward_strays(std::move(*inputs.strays));
        }
        if (publication || inputs.forwarding || drained || inputs.blocked || inputs.link_vips ||
            inputs.strays || inputs.again) {
            next = snapshot();
        }
    }
    if (publication && compiled_listener_) {
        compiled_listener_(*publication);
    }
    if (next != nullptr) {
        publish_(std::move(next));
    }
    if (inputs.link_vips) {
        const std::lock_guard lock(input_mutex_);
        answered_ = std::move(*inputs.link_vips);
        if (answered_listener_) {
            answered_listener_();
        }
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
        publication->changed.clear();
        in_force_ = std::move(*publication);
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

void Reconciler::follow_linux(const drivers::MirroredState& mirror) {
    parts_.follow_linux(mirror,
                        parts_.has_snat_addresses() ? drivers::host_addresses() : std::vector<IpAddr>{});
}

void Reconciler::take_over(std::shared_ptr<const GatewayShares> shares) {
    state_.shares = std::move(shares);
    parts_.set_shares(state_.shares.get());
}

// Updates routes, source addresses and the identity from the state of Linux.
Reconciler::IdentityChange Reconciler::take_over(const drivers::MirroredState& mirror) {
    follow_linux(mirror);
    const auto replace = [](auto& held, auto now) {
        const bool differs = held != now;
        held = std::move(now);
        return differs;
    };
    model::GatewayIdentity& identity = state_.identity;
    IdentityChange change{
        .addresses = replace(identity.addresses, port_addresses(options_.snapshots.twins, mirror.addresses))};
    // In mode node the list is not needed: all Pods can be reached.
    if (identity.mode == model::GatewayMode::External) {
        change.routed_prefixes = replace(identity.routed_prefixes, routed_prefixes(mirror.routes));
    }
    return change;
}

void Reconciler::recompile(std::span<const model::ServiceKey> touched) {
    parts_.follow_pod_cidrs(state_.environment.pod_cidrs, state_.compiler.ids().services.size() == 0);
    state_.compiler.run({state_.asked, state_.environment.node_ports, state_.identity.addresses,
                         acceptance_.affinity_ended(), state_.health, state_.shares},
                        touched);
    acceptance_.forget_affinity_ended();
    issue(keeper_.follow(state_.compiler.changes(), *state_.compiler.compiled(), state_.compiler.ids(),
                         flows_.flows_of, options_.now()));
    parts_.follow_idle_limits(state_.compiler);
}

void Reconciler::issue(const std::vector<conn::FlowOrder>& orders) {
    parts_.issue(orders, flows_.orders_done ? flows_.orders_done() : 0);
}

std::unique_ptr<config::Snapshot> Reconciler::snapshot() const {
    return parts_.assemble(state_.compiler.compiled()->table, state_.environment.rejects_closed_vip_ports);
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
        state_.applied_on = std::chrono::system_clock::now();
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
