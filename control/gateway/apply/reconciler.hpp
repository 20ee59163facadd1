// SPDX-License-Identifier: Apache-2.0
// The thread that compiles desired state into snapshots and publishes them to the workers. It collects all
// input that arrived since its last round (states from the stream; routes, neighbours and addresses from
// Linux), compiles once, publishes once, and then answers each message with its result. A burst of changes
// therefore costs one publication, and a snapshot never contains part of a message (GEN-007).
//
//   stream --submit()--> [updates] --+
//                                    +--> accept -> compile -> Snapshot -> publish -> Applied, last-good file
//   netlink -mirrored()-> [newest] --+                          (waits for all workers)
//   plan of shares - set_shares() ---+
//   clock -- end of a drain ---------+   (FlowKeeper)
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/apply/acceptance.hpp"
#include "control/gateway/apply/last_good.hpp"
#include "control/gateway/apply/snapshot_assembly.hpp"
#include "control/gateway/apply/state_saver.hpp"
#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/flow_keeper.hpp"
#include "control/gateway/compile/port_addresses.hpp"
#include "control/model/desired.hpp"
#include "control/rpc/state_update.hpp"
#include "dataplane/adopt/former.hpp"
#include "dataplane/config/snapshot.hpp"
#include "drivers/host/netlink_mirror.hpp"

namespace penstock::gateway {

struct ReconcilerOptions {
    model::GatewayIdentity identity;  // its addresses and routed prefixes come from Linux
    SnapshotAssembly::Options snapshots;
    std::string state_file;  // "": none
    // The clock by which flows drain.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// Readings of the workers' flows. Called on the reconciler's thread.
struct FlowReadings {
    std::function<uint64_t()> orders_done;  // WorkerSet::flow_orders_done; null: no order is ever done
    FlowKeeper::FlowsOf flows_of;           // null: any backend may have flows
};

// The origin of the state in force.
enum class StateOrigin : uint8_t { None, Stream, LastGood };

// The state that the thread works on. Other threads access it only through Reconciler::read().
struct ReconcilerState : AcceptedState {
    explicit ReconcilerState(IdMap&& ids) : compiler(std::move(ids)) {}
    model::GatewayIdentity identity;
    rpc::StateVersion applied;  // in force in every worker
    StateOrigin origin = StateOrigin::None;
    std::chrono::steady_clock::time_point applied_at;
    std::chrono::system_clock::time_point applied_on;  // the same moment
    ProbeResults health;
    std::shared_ptr<const GatewayShares> shares;  // null: none
    Compiler compiler;
    std::shared_ptr<const drivers::MirroredState> mirror = std::make_shared<drivers::MirroredState>();
};

// The configuration that every worker has now.
struct Publication {
    std::shared_ptr<const Compiled> compiled;
    // A superset of the service ports that differ from the previous publication.
    std::vector<model::ServiceKey> changed;
    bool node_eligible = true;
    bool has_state = false;     // a state is in force; it may be empty
    std::string vips_withheld;  // model::Environment
};

class Reconciler {
 public:
    // Makes a snapshot current in every running worker, and returns when it is (worker::WorkerSet::publish).
    // A worker that is stopped reads the snapshot when it continues, so the snapshot is in force for every
    // later packet.
    using Publish = std::function<void(std::unique_ptr<config::Snapshot>)>;

    explicit Reconciler(ReconcilerOptions options, IdMap ids = IdMap());
    ~Reconciler();  // stop()
    Reconciler(const Reconciler&) = delete;
    Reconciler& operator=(const Reconciler&) = delete;

    // The snapshot that workers start with: the last good state, or none, with Linux's routes. Once, before
    // start().
    std::unique_ptr<config::Snapshot> begin(std::optional<LastGood> last_good,
                                            std::shared_ptr<const drivers::MirroredState> mirror);
    // Flows of a former process whose endpoint or frontend is not of the state that begin() returned: the
    // backend under which they continue until the rules for removed endpoints end them; unset: they end now.
    // Between begin() and start().
    [[nodiscard]] BackendId keep_leaving(const adopt::LeavingFlows& flows);
    void start(Publish publish, FlowReadings flows = {});
    // Applies nothing more, answers pending messages with Unavailable, and finishes the last-good file.
    // Idempotent.
    void stop();

    // A validated message of the stream. Any thread. Answered through update.done.
    void submit(rpc::StateUpdate update);
    // The current state of Linux. `forwarding`: workers need it; otherwise it is only for readers. Any
    // thread.
    void mirrored(std::shared_ptr<const drivers::MirroredState> state, bool forwarding);
    // New probe results, by service port; null: no results any more. Any thread.
    void probed(std::vector<std::pair<model::ServiceKey, SharedHealth>> results);
    // Prefixes of the sources whose packets are dropped from now on; empty: none. Any thread, also before
    // begin().
    void block(route::PrefixSet sources);
    // The shares of several gateways from now on; null: none. Any thread, also before begin().
    void set_shares(std::shared_ptr<const GatewayShares> shares);
    // The gateways to which strays are forwarded from now on; null: they are not. Any thread.
    void forward_strays(std::shared_ptr<const shares::Strays> strays);
    // The VIPs that workers answer ARP and ND for from now on; null: none. Any thread.
    void answer_for(std::shared_ptr<const route::LinkVips> vips);
    // Those that every running worker has now; null: none. Any thread.
    [[nodiscard]] std::shared_ptr<const route::LinkVips> answered() const;
    // Called on the reconciler's thread after answered() has changed; null: none. Any thread.
    void set_answered_listener(std::function<void()> listener);
    // Publishes the state in force again, because a value queried before a publication has changed. Any
    // thread.
    void publish_again();
    // Arrival time of the oldest input that is not yet in every worker (HC-006). Any thread.
    [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> waiting_since() const;
    // Number of rounds of the thread, and whether it waits for input now. Any thread.
    struct Progress {
        uint64_t rounds = 0;
        bool is_waiting = false;
    };
    [[nodiscard]] Progress progress() const noexcept {
        return {rounds_.load(std::memory_order_relaxed), is_waiting_.load(std::memory_order_relaxed)};
    }
    // Status of saving the last good configuration; empty without a state file. Any thread, from start() to
    // stop().
    [[nodiscard]] std::optional<SaveStatus> saving() const;
    // Called on the reconciler's thread after each publication of a compiled result; null: none. Any thread.
    using Published = std::function<void(const Publication& publication)>;
    void set_published_listener(Published listener);
    // Called on the reconciler's thread after each compilation, before the workers get its result. Before
    // start().
    void set_compiled_listener(Published listener) { compiled_listener_ = std::move(listener); }
    // The publication that every worker has now, without its `changed`. Any thread, after begin(). A listener
    // that was set before this call receives each later one.
    [[nodiscard]] Publication in_force() const;
    // Reads the clock of the options again; the thread does not sleep by that clock. Any thread.
    void look_at_clock();
    // Called on the reconciler's thread after each change of the identity; null: none. Any thread.
    void set_identity_listener(std::function<void()> listener);

    // Reads the state. Nothing changes meanwhile, so the call must be short. Any thread, but not from a
    // callback of this class.
    template <typename Reader>
    auto read(Reader&& reader) const {
        const std::lock_guard lock(state_mutex_);
        return reader(state_);
    }

 private:
    struct Inputs {
        std::vector<rpc::StateUpdate> updates;
        std::shared_ptr<const drivers::MirroredState> mirror;
        bool forwarding = false;
        std::vector<std::pair<model::ServiceKey, SharedHealth>> health;
        std::optional<route::PrefixSet> blocked;
        std::optional<std::shared_ptr<const route::LinkVips>> link_vips;
        std::optional<std::shared_ptr<const shares::Strays>> strays;
        std::optional<std::shared_ptr<const GatewayShares>> shares;
        bool again = false;
        std::optional<std::chrono::steady_clock::time_point> since;  // arrival of the first input
        void note_arrival();
        bool clock = false;
    };
    struct Answer;
    // The parts of the identity that changed.
    struct IdentityChange {
        bool addresses = false;
        bool routed_prefixes = false;
    };

    template <typename Change>
    void put_in(const Change& change);
    void run();
    void process(Inputs inputs);
    IdentityChange take_over(const drivers::MirroredState& mirror);
    void follow_linux(const drivers::MirroredState& mirror);
    void take_over(std::shared_ptr<const GatewayShares> shares);
    void recompile(std::span<const model::ServiceKey> touched);
    void issue(const std::vector<conn::FlowOrder>& orders);
    std::unique_ptr<config::Snapshot> snapshot() const;
    void answer(std::vector<Answer>& answers);
    void save();

    const ReconcilerOptions options_;

    mutable std::mutex state_mutex_;  // of the next three
    ReconcilerState state_;
    Acceptance acceptance_;
    SnapshotAssembly parts_;
    FlowKeeper keeper_;

    mutable std::mutex input_mutex_;
    std::condition_variable input_ready_;
    Inputs inputs_;
    bool stopping_ = false;
    std::function<void()> identity_listener_, answered_listener_;
    std::shared_ptr<const route::LinkVips> answered_;
    Published published_listener_;
    Published compiled_listener_;
    Publication in_force_;
    std::optional<std::chrono::steady_clock::time_point> processing_since_;  // of the inputs being processed

    std::atomic<uint64_t> rounds_{0};
    std::atomic<bool> is_waiting_{false};
    Publish publish_;
    FlowReadings flows_;
    std::optional<StateSaver> saver_;
    std::thread thread_;
};

}  // namespace penstock::gateway
