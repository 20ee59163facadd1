// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/share_return.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace penstock::gateway {
namespace share_return_test {

using std::chrono::seconds;
using Channel = ShareReturn::Peer::Channel;

// Share 0: primary a, heir b. Share 1: primary b, heir a. Share 2: primary b, heir c.
shares::Plan plan() {
    return {.version = 1,
            .gateways = {{.name = "a"}, {.name = "b"}, {.name = "c"}},
            .shares = {{.vips = {}, .primary = "a", .heir = "b"},
                       {.vips = {}, .primary = "b", .heir = "a"},
                       {.vips = {}, .primary = "b", .heir = "c"}}};
}

// Gateway a is the primary of share 2, too.
shares::Plan plan_with_share_2() {
    shares::Plan next = plan();
    next.version = 2;
    next.shares[2] = {.vips = {}, .primary = "a", .heir = "b"};
    return next;
}

// One gateway, with what it sees of the others.
struct One {
    explicit One(const std::string& name, ShareReturn::First first = ShareReturn::First::AtStart,
                 uint64_t returning = 0, ShareReturn::FailBack fail_back = ShareReturn::FailBack::Automatic)
        : shares(plan(), name), state(first, returning, fail_back) {}
    bool update(seconds at = seconds(0)) {
        return state.update(
            shares, [&](const std::string& other) { return peers[other]; }, ShareReturn::Time(at));
    }
    GatewayShares shares;
    ShareReturn state;
    std::map<std::string, ShareReturn::Peer> peers;
};

TEST(ShareReturn, WithoutCopiesThereIsNothingToWaitFor) {
    One a("a");
    EXPECT_FALSE(a.update());
    EXPECT_EQ(a.state.returning(), 0u);
    EXPECT_TRUE(a.state.has_returned_as_primary());
}

TEST(ShareReturn, APrimaryWaitsForTheConnectionsOfItsHeir) {
    One a("a");
    a.peers["b"] = {Channel::Away, false};
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning(), 0b011u);
    EXPECT_FALSE(a.state.has_returned_as_primary());
    a.peers["b"] = {Channel::Copying, false};
    EXPECT_FALSE(a.update(seconds(1)));
    a.peers["b"] = {Channel::Complete, false};
    EXPECT_TRUE(a.update(seconds(2)));
    EXPECT_EQ(a.state.returning(), 0b010u) << "b has not returned to the share of which a is the heir";
    EXPECT_TRUE(a.state.has_returned_as_primary());
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_TRUE(a.update(seconds(3)));
    EXPECT_EQ(a.state.returning(), 0u);
    // For good: the loss of the channel is no new return.
    a.peers["b"] = {Channel::Away, false};
    EXPECT_FALSE(a.update(seconds(4)));
    EXPECT_EQ(a.state.returning(), 0u);
}

TEST(ShareReturn, AnHeirStopsWaitingForAPrimaryThatIsAwayAndAPrimaryDoesNot) {
    One a("a");
    a.peers["b"] = {Channel::Away, false};
    EXPECT_TRUE(a.update(seconds(0)));
    EXPECT_FALSE(a.update(seconds(9)));
    a.peers["b"] = {Channel::Copying, false};
    EXPECT_FALSE(a.update(seconds(9)));
    a.peers["b"] = {Channel::Away, false};
    EXPECT_FALSE(a.update(seconds(12)));
    EXPECT_FALSE(a.update(seconds(21)));
    EXPECT_TRUE(a.update(seconds(22)));
    EXPECT_EQ(a.state.returning(), 0b001u);
    EXPECT_FALSE(a.update(seconds(3'600)));
    EXPECT_FALSE(a.state.has_returned_as_primary());
}

TEST(ShareReturn, AnHeirStopsWaitingForTheReturnOfAPrimary) {
    One a("a");
    a.peers["b"] = {Channel::Complete, false};
    EXPECT_TRUE(a.update(seconds(0)));
    EXPECT_EQ(a.state.returning(), 0b010u);
    EXPECT_FALSE(a.update(seconds(9)));
    EXPECT_TRUE(a.update(seconds(10)));
    EXPECT_EQ(a.state.returning(), 0u) << "b cannot reach a, and is at a level behind";
}

TEST(ShareReturn, ASuccessorContinuesAReturn) {
    One a("a", ShareReturn::First::Never, 0b001);
    a.peers["b"] = {Channel::Copying, true};
    EXPECT_FALSE(a.update());
    EXPECT_EQ(a.state.returning(), 0b001u);
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning(), 0u);
}

TEST(ShareReturn, TwoGatewaysThatStartTogetherDoNotWaitForEachOther) {
    One a("a"), b("b");
    a.peers["b"] = b.peers["a"] = {Channel::Complete, false};
    b.peers["c"] = {Channel::Off, false};
    a.update();
    b.update();
    EXPECT_EQ(a.state.returning(), 0b010u);
    EXPECT_EQ(b.state.returning(), 0b001u);
    a.peers["b"].has_returned = b.state.has_returned_as_primary();
    b.peers["a"].has_returned = a.state.has_returned_as_primary();
    a.update();
    b.update();
    EXPECT_EQ(a.state.returning() | b.state.returning(), 0u);
}

TEST(ShareReturn, AProcessThatContinuesAnotherReturnsToNewSharesOnly) {
    One a("a", ShareReturn::First::Never);
    a.peers["b"] = {Channel::Away, false};
    EXPECT_FALSE(a.update());
    EXPECT_EQ(a.state.returning(), 0u);
    shares::Plan next = plan_with_share_2();
    a.shares = GatewayShares(next, "a");
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning(), 0b100u);
    // Heir and primary change places: no return, because both have the connections.
    std::swap(next.shares[0].primary, next.shares[0].heir);
    a.shares = GatewayShares(next, "a");
    EXPECT_FALSE(a.update());
    EXPECT_EQ(a.state.returning(), 0b100u);
}

TEST(ShareReturn, APrimaryThatCouldReturnWaitsForTheCommand) {
    One a("a", ShareReturn::First::AtStart, 0, ShareReturn::FailBack::ByCommand);
    a.peers["b"] = {Channel::Copying, true};
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.held(), 0u);
    a.state.fail_back();
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_TRUE(a.update(seconds(1)));
    EXPECT_EQ(a.state.returning(), 0b001u) << "an heir needs no command; the one before was too early";
    EXPECT_EQ(a.state.held(), 0b001u);
    EXPECT_FALSE(a.state.has_returned_as_primary());
    EXPECT_FALSE(a.update(seconds(3'600)));
    // Copies that are not complete any more.
    a.peers["b"] = {Channel::Away, true};
    EXPECT_FALSE(a.update(seconds(3'601)));
    EXPECT_EQ(a.state.held(), 0u);
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_FALSE(a.update(seconds(3'602)));
    a.state.fail_back();
    EXPECT_TRUE(a.update(seconds(3'603)));
    EXPECT_EQ(a.state.returning() | a.state.held(), 0u);
    EXPECT_TRUE(a.state.has_returned_as_primary());
}

TEST(ShareReturn, AShareOfANewPlanNeedsNoCommand) {
    One a("a", ShareReturn::First::Never, 0, ShareReturn::FailBack::ByCommand);
    a.peers["b"] = {Channel::Away, false};
    EXPECT_FALSE(a.update());
    a.shares = GatewayShares(plan_with_share_2(), "a");
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning(), 0b100u);
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning() | a.state.held(), 0u);
}

// An upgrade while the command is awaited.
TEST(ShareReturn, ASuccessorAwaitsTheCommandToo) {
    One a("a", ShareReturn::First::Never, 0b001, ShareReturn::FailBack::ByCommand);
    a.peers["b"] = {Channel::Complete, true};
    a.update();
    EXPECT_EQ(a.state.held(), 0b001u);
    a.state.fail_back();
    a.update();
    EXPECT_EQ(a.state.returning(), 0u);
}

TEST(ShareReturn, AShareThatAnotherGatewayHasHeldIsReturnedTo_PRESENCE006) {
    One a("a", ShareReturn::First::Never);
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_FALSE(a.update());
    a.state.lose(0b001);
    a.peers["b"] = {Channel::Copying, true};
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning(), 0b001u);
    EXPECT_FALSE(a.update());
    a.peers["b"] = {Channel::Complete, true};
    EXPECT_TRUE(a.update());
    EXPECT_EQ(a.state.returning(), 0u);
    EXPECT_FALSE(a.update()) << "once";
    One by_command("a", ShareReturn::First::Never, 0, ShareReturn::FailBack::ByCommand);
    by_command.peers["b"] = {Channel::Complete, true};
    EXPECT_FALSE(by_command.update());
    by_command.state.lose(0b001);
    EXPECT_TRUE(by_command.update());
    EXPECT_EQ(by_command.state.held(), 0b001u) << "as after a start";
}

}  // namespace share_return_test
}  // namespace penstock::gateway
