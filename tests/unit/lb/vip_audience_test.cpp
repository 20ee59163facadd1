// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/vip_audience.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "dataplane/lb/service_table_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/lb/lb_fixture.hpp"

namespace penstock::lb {
namespace vip_audience_test {

using test::ip;

// Few bits, so that prefixes adjoin and contain one another.
IpAddr some_address(penstock::test::Prng& random) {
    const auto last = static_cast<uint8_t>(random.below(64));
    return random.one_in(2) ? IpAddr::v4(198, 51, 100, last)
                            : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last});
}
Prefix some_prefix(penstock::test::Prng& random) {
    const IpAddr address = some_address(random);
    return *Prefix::make(address, static_cast<unsigned>(address.bits() - random.below(8)));
}

TEST(VipAudience, IsWhomAnyOfTheFiltersAllows_SRC006) {
    penstock::test::Prng random;
    for (int round = 0; round < 2'000; ++round) {
        std::vector<SourceFilter> filters;
        for (uint64_t n = random.below(5); n > 0; --n) {
            std::vector<Prefix> listed;
            for (uint64_t each = random.below(6); each > 0; --each) {
                listed.push_back(some_prefix(random));
            }
            filters.emplace_back(!random.one_in(20), std::move(listed), random.one_in(2));
        }
        std::vector<const SourceFilter*> asked;
        std::ranges::transform(filters, std::back_inserter(asked),
                               [](const SourceFilter& filter) { return &filter; });
        const bool is_open = random.one_in(10);
        if (is_open) {
            asked.push_back(nullptr);
        }
        const VipAudience audience(asked);
        for (int n = 0; n < 60; ++n) {
            const IpAddr client = some_address(random);
            const bool expected = is_open || std::ranges::any_of(filters, [&](const SourceFilter& filter) {
                                      return filter.allows(client);
                                  });
            ASSERT_EQ(audience.includes(client), expected) << client.to_string() << " in round " << round;
        }
    }
    EXPECT_FALSE(VipAudience().includes(ip("198.51.100.1")));
}

// Successive versions against a search of all current frontends.
TEST(VipEcho, FollowsTheFrontendsOfTheAddress_SRC006_LB018) {
    penstock::test::Prng random;
    struct Known {
        std::shared_ptr<const Service> service;
        std::shared_ptr<const SourceFilter> filter;
        bool is_of_vip;
    };
    std::vector<std::shared_ptr<const SourceFilter>> filters{nullptr};
    for (int n = 0; n < 3; ++n) {
        filters.push_back(
            std::make_shared<const SourceFilter>(true, std::vector{some_prefix(random)}, n == 2));
    }
    ServiceTableBuilder builder;
    std::map<std::pair<IpAddr, L4Port>, Known> model;
    const std::vector<IpAddr> addresses{ip("80.11.12.10"), ip("80.11.12.11"), ip("2001:db8:80::10")};
    for (int version = 0; version < 400; ++version) {
        std::set<std::pair<IpAddr, L4Port>> edited;
        for (uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
            const std::pair at{addresses[random.below(addresses.size())],
                               static_cast<L4Port>(80 + random.below(3))};
            if (!edited.insert(at).second) {
                continue;
            }
            if (random.one_in(2)) {
                builder.erase(at.first, at.second, Protocol::Tcp);
                model.erase(at);
                continue;
            }
            auto service = std::make_shared<Service>();
            service->sets.resize(1);
            service->sets[0].when_empty = random.one_in(2) ? EmptyAction::DropNoLocal : EmptyAction::Reject;
            if (random.one_in(3)) {
                service->sets[0].usable.push_back({.address = ip("10.1.1.1"), .port = 80});
            }
            const FrontendClass cls =
                random.one_in(4) ? FrontendClass::ClusterIp : FrontendClass::LoadBalancerIp;
            const auto filter = filters[random.below(filters.size())];
            builder.put({.address = at.first,
                         .port = at.second,
                         .protocol = Protocol::Tcp,
                         .cls = cls,
                         .service = service,
                         .filter = filter});
            model[at] = {service, filter, cls != FrontendClass::ClusterIp};
        }
        for (const IpAddr& address : addresses) {
            builder.set_vip(address, std::ranges::any_of(model, [&](const auto& row) {
                                return row.first.first == address && row.second.is_of_vip;
                            }));
        }
        const auto table = builder.table();
        for (const IpAddr& address : addresses) {
            for (int n = 0; n < 8; ++n) {
                const IpAddr client = some_address(random);
                bool is_allowed = false, has_usable = false, is_elsewhere = false;
                for (const auto& [at, known] : model) {
                    if (at.first == address && known.is_of_vip) {
                        is_allowed |= known.filter == nullptr || known.filter->allows(client);
                        has_usable |= !known.service->sets[0].usable.empty();
                        is_elsewhere |= known.service->sets[0].usable.empty() &&
                                        known.service->sets[0].when_empty == EmptyAction::DropNoLocal;
                    }
                }
                const auto expected = !is_allowed                   ? ServiceTable::Echo::NotAllowed
                                      : !has_usable && is_elsewhere ? ServiceTable::Echo::Withdrawn
                                                                    : ServiceTable::Echo::Answer;
                ASSERT_EQ(table->echo(address, client), expected)
                    << address.to_string() << " in version " << version;
            }
        }
    }
}

}  // namespace vip_audience_test
}  // namespace penstock::lb
