// SPDX-License-Identifier: Apache-2.0
// For any history of objects, stream, answers and the gateway's state: after a quiet period the gateway has
// the state that the objects require.
#include <gtest/gtest.h>

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <array>
#include <optional>

#include "control/sync/stream/state_session.hpp"
#include "tests/support/evaluate.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/sync/model_gateway.hpp"
#include "tests/unit/sync/objects.hpp"

namespace penstock::sync {
namespace state_session_property_test {

using namespace std::chrono_literals;
using Objects = kube::ObjectSet;

// Few names and few variations, so that equal, changed, new and removed objects all occur.
kube::Changes random_change(test::Prng& random, Objects& objects) {
    const std::string name = "s" + std::to_string(random.below(6));
    kube::Changes changes;
    if (random.one_in(3)) {
        const kube::ObjectName key{"default", name};
        if (random.one_in(3)) {
            objects.services.erase(key);
            changes.services[key] = nullptr;
        } else {
            auto service = test::service_at(name, "80.0.0." + std::to_string(random.between(1, 3)));
            service.meta.creation_timestamp = "2026-01-01T00:00:0" + std::to_string(random.below(3)) + "Z";
            objects.services[key] = service;
            changes.services[key] = std::make_shared<const kube::Service>(service);
        }
        return changes;
    }
    const kube::ObjectName key{"default", name + "-" + std::to_string(random.below(2))};
    if (random.one_in(4)) {
        objects.slices.erase(key);
        changes.slices[key] = nullptr;
    } else {
        std::vector<std::string> addresses;
        for (uint64_t i = random.below(3); i > 0; --i) {
            addresses.push_back("10.0.0." + std::to_string(random.between(1, 5)));
        }
        std::ranges::sort(addresses);
        addresses.erase(std::ranges::unique(addresses).begin(), addresses.end());
        const auto slice = test::slice_of(name, key.name, addresses);
        objects.slices[key] = slice;
        changes.slices[key] = std::make_shared<const kube::EndpointSlice>(slice);
    }
    return changes;
}

class History {
 public:
    explicit History(uint64_t seed) : random_(seed) {}

    void step() {
        now_ += std::chrono::milliseconds(random_.below(80));
        switch (random_.below(8)) {
            case 0:
                lose_stream();
                break;
            case 1:
                if (!open_) {
                    open();
                }
                break;
            case 2:
                if (random_.one_in(10)) {
                    corrupt();
                }
                break;
            case 3:
            case 4:
                exchange(random_.below(4));
                break;
            default:
                session_.on_changes(random_change(random_, objects_), now_);
        }
    }
    // No more events, and the audit has been due: earlier events must have no effect.
    void end() {
        if (!open_) {
            open();
        }
        for (int i = 0; i < 3; ++i) {
            now_ += 31min;
            session_.on_changes({}, now_ - 1s);
            exchange(1'000);
        }
        model::GatewayIdentity identity = rpc::from_proto(gateway_.identity()).value();
        const auto outcome = semantics::evaluate(objects_, identity, test::sync_policy());
        ASSERT_EQ(gateway_.services.size(), outcome.desired.services.size());
        for (const auto& [key, service] : outcome.desired.services) {
            const auto held = gateway_.services.find(key.to_string());
            ASSERT_NE(held, gateway_.services.end()) << key.to_string();
            ASSERT_TRUE(
                google::protobuf::util::MessageDifferencer::Equals(held->second, rpc::to_proto(service)))
                << held->second.DebugString() << rpc::to_proto(service).DebugString();
        }
    }

 private:
    void open() {
        session_.on_stream_opened();
        ASSERT_TRUE(session_.on_identity(gateway_.identity(), now_));
        open_ = true;
    }
    void lose_stream() {
        if (std::exchange(open_, false)) {
            session_.on_stream_ended();
            gateway_.drop_parts();
            answer_.reset();
            if (random_.one_in(10)) {
                // It restarted with another state.
                gateway_.applied.set_version(gateway_.applied.version() + random_.below(2));
                gateway_.applied.set_source("somebody else");
            }
        }
    }
    void corrupt() {
        if (!gateway_.services.empty()) {
            gateway_.services.begin()->second.set_service_port(9);
        }
    }
    // Messages in both directions; answers may be late, or lost with the stream.
    void exchange(uint64_t times) {
        for (uint64_t i = 0; open_ && i < times; ++i) {
            if (answer_) {
                ASSERT_TRUE(session_.on_applied(*std::exchange(answer_, std::nullopt), now_));
            }
            const auto message = session_.next(now_);
            if (!message) {
                return;
            }
            auto taken = gateway_.take(*message);
            ASSERT_TRUE(taken) << taken.error().what;
            answer_ = std::move(*taken);
        }
    }

    test::Prng random_;
    StateSession::Time now_{1h};
    Objects objects_;
    StateSession session_{{.source = "me", .policy = test::sync_policy()}};
    test::ModelGateway gateway_;
    std::optional<v1::Applied> answer_;
    bool open_ = false;
};

TEST(StateSessionProperty, TheGatewayEndsWithWhatTheObjectsMean_GEN006) {
    test::Prng random;
    for (int i = 0; i < 300; ++i) {
        History history(random.next());
        for (uint64_t steps = random.below(120); steps > 0; --steps) {
            ASSERT_NO_FATAL_FAILURE(history.step());
        }
        ASSERT_NO_FATAL_FAILURE(history.end());
    }
}

// Endpoints move between slices, removal first, during all other events. If every loss of a Service is
// replaced within 50 ms, it has an endpoint at the gateway at all times. One that really loses its last
// endpoint has none after the hold time and a window.
class Moves {
 public:
    Moves(uint64_t seed, std::chrono::milliseconds coalesce)
        : random_(seed),
          coalesce_(coalesce),
          session_(
              {.source = "me", .policy = test::sync_policy(), .coalesce = coalesce, .audit_period = 1s}) {
        kube::Changes all;
        for (size_t i = 0; i < kServices; ++i) {
            const std::string name = name_of(i);
            all.merge(test::changes_of(
                {test::service_at(name, "80.0.0." + std::to_string(1 + i))},
                {test::slice_of(name, name + "-0", {"10.0.0.1"}), test::slice_of(name, name + "-1", {})}));
        }
        session_.on_changes(std::move(all), now_);
        open();
        now_ += 100ms;
        exchange();
    }
    void pass_ms() {
        now_ += 1ms;
        for (size_t i = 0; i < kServices; ++i) {
            advance(i);
        }
        if (random_.one_in(100)) {
            session_.on_stream_ended();
            gateway_.drop_parts();
            if (random_.one_in(2)) {
                gateway_.applied.set_source("somebody else");
            }
            open();
        }
        exchange();
        for (size_t i = 0; i < kServices; ++i) {
            check(i);
        }
    }

 private:
    static constexpr size_t kServices = 4;  // the last one loses its endpoint for longer periods
    struct Mover {
        size_t slice = 0;
        std::optional<StateSession::Time> lost;
        StateSession::Time found_at{};
    };
    static std::string name_of(size_t i) { return "s" + std::to_string(i); }
    static bool is_slow(size_t i) { return i == kServices - 1; }

    void say(size_t i, size_t slice, const std::vector<std::string>& addresses) {
        session_.on_changes(
            test::changes_of(
                {}, {test::slice_of(name_of(i), name_of(i) + "-" + std::to_string(slice), addresses)}),
            now_);
    }
    void advance(size_t i) {
        Mover& mover = movers_[i];
        if (mover.lost && now_ >= mover.found_at) {
            mover.slice = 1 - mover.slice;
            mover.lost.reset();
            say(i, mover.slice, {"10.0.0." + std::to_string(random_.between(1, 2))});
        } else if (!mover.lost &&
                   now_ >= mover.found_at + coalesce_ + kSettleMax &&  // the last move has been applied
                   random_.one_in(is_slow(i) ? 500 : 60)) {
            mover.lost = now_;
            mover.found_at =
                now_ + std::chrono::milliseconds(is_slow(i) ? random_.between(300, 500) : random_.below(51));
            say(i, mover.slice, {});
        }
    }
    void check(size_t i) {
        const auto& service = gateway_.services.at("default/" + name_of(i) + ":http/TCP");
        if (!is_slow(i)) {
            ASSERT_EQ(service.sets(0).endpoints_size(), 1) << name_of(i);
        } else if (movers_[i].lost && now_ >= *movers_[i].lost + kSettleMax + coalesce_ + kLossWait) {
            ASSERT_EQ(service.sets(0).endpoints_size(), 0) << "it is not held back for ever";
        }
    }
    void open() {
        session_.on_stream_opened();
        ASSERT_TRUE(session_.on_identity(gateway_.identity(), now_));
    }
    void exchange() {
        while (const auto message = session_.next(now_)) {
            const auto applied = gateway_.take(*message);
            ASSERT_TRUE(applied) << applied.error().what;
            if (*applied) {
                ASSERT_TRUE(session_.on_applied(**applied, now_));
            }
        }
    }

    test::Prng random_;
    StateSession::Time now_{1h};
    const std::chrono::milliseconds coalesce_;
    StateSession session_;
    test::ModelGateway gateway_;
    std::array<Mover, kServices> movers_;
};

TEST(StateSessionProperty, AnEndpointThatMovesWithin50MsIsNeverMissing_GEN008_EP017) {
    test::Prng random;
    for (int i = 0; i < 20; ++i) {
        Moves moves(random.next(), i % 2 == 0 ? kCoalesceDefault : kCoalesceMax);
        for (int ms = 0; ms < 5'000; ++ms) {
            ASSERT_NO_FATAL_FAILURE(moves.pass_ms());
        }
    }
}

}  // namespace state_session_property_test
}  // namespace penstock::sync
