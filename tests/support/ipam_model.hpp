// SPDX-License-Identifier: Apache-2.0
// The simplest allocator of LoadBalancer addresses that could be right: after each batch it considers every
// Service, every pool and every address again, in the order of the rules, until nothing changes. Written from
// the requirements, not from control/ipam. Understands only native annotations.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/ipam/allocator.hpp"

namespace penstock::test {

class IpamModel {
 public:
    using Name = kube::ObjectName;

    void apply(const ipam::Changes& changes);
    // Forgets the addresses in use, as a restart does. The next batch must contain everything.
    void restart();

    struct Outcome {
        std::vector<IpAddr> addresses;
        std::optional<ipam::RefusalReason> refusal;
        bool operator==(const Outcome&) const = default;
    };
    // Of owned Services only.
    [[nodiscard]] const std::map<Name, Outcome>& outcomes() const { return outcomes_; }

    // Whether two Services may share an address (LB-011).
    [[nodiscard]] static bool may_share(const kube::Service& a, const kube::Service& b);
    // Whether the pool may give a new address to the Service, if it is requested (LB-010, LB-023, LB-025).
    [[nodiscard]] bool is_permitted(const kube::Service& service, const ipam::Pool& pool) const;
    [[nodiscard]] const ipam::Pool* pool_with(const IpAddr& address) const;
    [[nodiscard]] const kube::Service& service(const Name& name) const { return *services_.at(name); }

 private:
    using ServicePtr = std::shared_ptr<const kube::Service>;
    struct Wish;
    struct Found {
        std::vector<IpAddr> addresses;
        std::optional<ipam::RefusalReason> refusal;
    };

    [[nodiscard]] std::vector<Name> by_age() const;
    [[nodiscard]] bool may_keep(const Name& name, const IpAddr& address) const;
    [[nodiscard]] std::optional<ipam::RefusalReason> taken(const Name& name, const IpAddr& address) const;
    bool claim(const Name& name, const std::vector<IpAddr>& addresses, bool adopts);
    bool improve(const Name& name);
    [[nodiscard]] Found find(const Name& name, const Wish& wish, bool only_reassign) const;
    [[nodiscard]] std::vector<IpAddr> without_uncovered(const Name& name, const Wish& wish) const;
    [[nodiscard]] std::optional<IpAddr> pick(const Name& name, const Wish& wish, const ipam::Pool& pool,
                                             IpFamily family) const;
    void order(const Name& name);

    std::vector<ipam::Pool> pools_;
    std::map<std::string, annotations::Labels> labels_;
    std::map<Name, ServicePtr> services_;  // owned ones
    std::map<Name, std::vector<IpAddr>> held_;
    std::map<Name, Outcome> outcomes_;
};

}  // namespace penstock::test
