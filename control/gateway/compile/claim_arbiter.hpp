// SPDX-License-Identifier: Apache-2.0
// The arbiter of claims: determines which service port owns each address and port. Contains no backends, ids
// or table rows; the compiler (compile.hpp) decides everything else about a service port.
//
//   want() -----> wanting --+
//   grant() ----> owner ----+--> one Interest per claim --> winner(): the owner, otherwise the first holder
//   refuse() ---> holding --+                               by key, otherwise none
//
// A claimant owns all claims of one version, or owns none and may hold those of the version that stays in
// force. Being due is independent of this: until the decision, a due claimant keeps what it owns or holds.
//
//   want(), make_due(), begin_round(),             grant()   owns the claims of its desired version only
//   or another claimant took or released --> due --------->
//   a claim that it wants                          refuse()  owns nothing; holds the claims of the version
//                                                            that stays in force, as far as no other
//                                                            claimant owns them
//
// Withdrawal releases everything. Claims are granted in order of rank: first claimants that were in force
// before the round, by key; then the new ones, by key (GEN-009). take_due() returns claimants in this
// order. While claimants are taken, a change of ownership makes only claimants of worse rank due, so a
// round processes each claimant once:
//
//   begin_round() -> want(), withdraw(), make_due()
//                 -> as long as there is one: take_due() -> grant() or refuse()
//                 -> set_in_force()
//
// One thread. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::gateway {

// The address or port that a service port claims for a frontend. NodePorts are claimed as a whole: (family,
// number, protocol), on all addresses that serve them.
struct FrontendKey {
    bool node_port = false;
    IpFamily family = IpFamily::V4;
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    bool operator==(const FrontendKey&) const = default;

    FrontendKey(const model::Frontend& frontend, Protocol of);
    static FrontendKey exact(const IpAddr& address, L4Port port, Protocol protocol);
    static FrontendKey of_node_port(IpFamily family, L4Port port, Protocol protocol);
    [[nodiscard]] std::string to_string() const;

 private:
    FrontendKey() = default;
};
struct FrontendKeyHash {
    size_t operator()(const FrontendKey& key) const noexcept;
};
using FrontendKeySet = std::unordered_set<FrontendKey, FrontendKeyHash>;

// A service port in the arbitration. The arbiter refers to it by its address and writes all other members.
struct Claimant {
    explicit Claimant(model::ServiceKey of) : key(std::move(of)) {}
    const model::ServiceKey key;
    std::shared_ptr<const model::Service> desired;  // null: no longer desired
    std::shared_ptr<const model::Service>
        owned;  // the version with granted claims; null: refused, or not decided yet
    // If refused: the version with the unowned claims that it keeps.
    std::shared_ptr<const model::Service> held;
    bool was_in_force = false;  // before this round: determines the rank
};

class ClaimArbiter {
 public:
    ClaimArbiter() = default;
    ClaimArbiter(const ClaimArbiter&) = delete;
    ClaimArbiter& operator=(const ClaimArbiter&) = delete;

    // Service ports that came into force in the last round now outrank newer ones. This never revokes a
    // claim. A service port that was refused already may now conflict with a different owner, so it becomes
    // due to report the first obstacle.
    void begin_round();
    // Replaces the desired version, and makes the claimant due.
    void want(Claimant& claimant, std::shared_ptr<const model::Service> desired);
    // Releases all claims. The claimants of worse rank that want one of them become due. Afterwards the
    // arbiter does not refer to the claimant. Only between begin_round() and the first take_due() of a round.
    void withdraw(Claimant& claimant);
    // For a reason other than a claim.
    void make_due(Claimant& claimant) { due_.insert(&claimant); }

    // Removes the due claimant of best rank and returns it; null: none. The caller passes it to grant() or
    // refuse(), or leaves it unchanged.
    [[nodiscard]] Claimant* take_due();
    // The owner of better rank than `claimant`, which wants the claim; null: none.
    [[nodiscard]] const Claimant* better_owner(const Claimant& claimant, const FrontendKey& claim) const;
    // The claimant now owns all claims of its desired version, and no others. No claim has a better owner.
    void grant(Claimant& claimant);
    // The claimant owns nothing. It keeps the claims of `in_force` (null: none) that no other one owns. A
    // version that it holds already is kept instead.
    void refuse(Claimant& claimant, std::shared_ptr<const model::Service> in_force);

    // Updates the rank at the end of a round. No claimant is due.
    void set_in_force(Claimant& claimant, bool is_in_force);

    // The claimant that has the row of a claim: the owner, otherwise the first holder by key; null: none.
    // Valid while no claimant is due.
    [[nodiscard]] const Claimant* winner(const FrontendKey& claim) const;

    // Claims whose winner, or the version that the winner has in force, may have changed since the last call
    // of forget_touched().
    [[nodiscard]] const FrontendKeySet& touched() const noexcept { return touched_; }
    void touch_node_ports();
    void touch_exact();
    // Empties touched(), and frees the memory of claims without any interest.
    void forget_touched();

 private:
    struct ByRank {
        bool operator()(const Claimant* a, const Claimant* b) const noexcept;
    };
    // The service ports interested in one claim. The owner is an accepted one among those that want it. If
    // there is no owner, the first of those that hold it has the row.
    struct Interest {
        std::vector<Claimant*> wanting;  // the claim is in their desired version
        // The claim is in the former version that a refused service port keeps.
        std::vector<Claimant*> holding;
        Claimant* owner = nullptr;
    };
    using Interests = std::unordered_map<FrontendKey, Interest, FrontendKeyHash>;
    enum class Released : uint8_t { All, Unwanted };  // Unwanted: not those that the desired version has

    void want_no_longer(Claimant& claimant);
    void hold(Claimant& claimant, std::shared_ptr<const model::Service> version);
    void hold_no_longer(Claimant& claimant);
    void release_owned(Claimant& claimant, Released released);
    // Claimants of worse rank than `of` that want the claim. A better one has no claim refused because of it.
    void make_due(const Interest& interest, const Claimant& of);

    [[nodiscard]] Interests& interests_of(const FrontendKey& claim) noexcept {
        return claim.node_port ? node_ports_ : exact_;
    }
    [[nodiscard]] const Interests& interests_of(const FrontendKey& claim) const noexcept {
        return claim.node_port ? node_ports_ : exact_;
    }
    // Of a claim that some claimant wants, holds or owns.
    [[nodiscard]] Interest& interest_of(const FrontendKey& claim);
    [[nodiscard]] const Interest& interest_of(const FrontendKey& claim) const;

    Interests exact_;
    Interests node_ports_;
    FrontendKeySet touched_;
    std::set<Claimant*, ByRank> due_;
    std::vector<const Claimant*> newly_in_force_;  // since the previous round: their rank has improved
};

}  // namespace penstock::gateway
