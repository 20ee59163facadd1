// SPDX-License-Identifier: Apache-2.0
#include "control/sync/reachability.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::sync {
namespace reachability_test {

using namespace std::chrono_literals;

class Listener final : public Observer {
 public:
    void on_notice_appeared(const std::string&, const semantics::ObjectNotice&) override {}
    void on_notice_gone(const std::string&, const semantics::ObjectNotice&) override {}
    void on_refused(const std::string&, const model::ServiceKey&, const std::string&,
                    const std::string&) override {}
    void on_programmed(const std::string&, const model::ServiceKey&) override {}
    void on_served(const std::string&, const kube::ObjectName&, bool) override {}
    void on_reachable(const std::string& gateway, bool is_reachable) override {
        told.push_back((is_reachable ? "+" : "-") + gateway);
    }
    std::vector<std::string> take() { return std::exchange(told, {}); }

 private:
    std::vector<std::string> told;
};

using Lines = std::vector<std::string>;

TEST(Reachability, AGatewayIsGoneAfterTwentySecondsWithoutTheState_PRESENCE001) {
    Reachability reachability;
    Listener listener;
    Reachability::Time now{1h};
    reachability.update("", false, now, listener);
    EXPECT_EQ(listener.take(), Lines()) << "it was never there";
    reachability.update("edge-1", true, now, listener);
    reachability.update("edge-1", true, now + 1s, listener);
    EXPECT_EQ(listener.take(), Lines{"+edge-1"});
    reachability.update("edge-1", false, now + 2s, listener);
    reachability.update("edge-1", false, now + 21s, listener);
    EXPECT_EQ(listener.take(), Lines());
    reachability.update("edge-1", true, now + 21s, listener);
    reachability.update("edge-1", false, now + 30s, listener);
    reachability.update("edge-1", false, now + 49s, listener);
    EXPECT_EQ(listener.take(), Lines()) << "it was back in between";
    reachability.update("edge-1", false, now + 50s, listener);
    reachability.update("edge-1", false, now + 60s, listener);
    EXPECT_EQ(listener.take(), Lines{"-edge-1"});
    reachability.update("edge-1", true, now + 61s, listener);
    EXPECT_EQ(listener.take(), Lines{"+edge-1"});
}

TEST(Reachability, AGatewayWithAnotherNameIsAnotherGateway_PRESENCE001) {
    Reachability reachability;
    Listener listener;
    const Reachability::Time now{1h};
    reachability.update("edge-1", true, now, listener);
    reachability.update("edge-2", true, now, listener);
    EXPECT_EQ(listener.take(), (Lines{"+edge-1", "-edge-1", "+edge-2"}));
}

}  // namespace reachability_test
}  // namespace penstock::sync
