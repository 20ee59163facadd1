// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/tcp_state.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>
#include <vector>

#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::conn {
namespace tcp_state_test {

using packet::TcpFlags;
constexpr TcpFlags kSyn{TcpFlags::kSyn}, kSynAck{TcpFlags::kSyn | TcpFlags::kAck}, kAck{TcpFlags::kAck};
constexpr TcpFlags kData{TcpFlags::kAck | TcpFlags::kPsh}, kFin{TcpFlags::kFin | TcpFlags::kAck},
    kRst{TcpFlags::kRst};
constexpr TcpFlags kRstAck{TcpFlags::kRst | TcpFlags::kAck}, kNull{0},
    kXmas{TcpFlags::kFin | TcpFlags::kPsh | TcpFlags::kUrg};
constexpr Direction F = Direction::Forward, R = Direction::Reverse;

struct Seen {
    Direction direction;
    TcpFlags flags;
    TcpState after;
    TcpAction action = TcpAction::Pass;
};
struct Conversation {
    const char* name;
    TcpState start;
    std::vector<Seen> packets;
};

TEST(TcpState, FollowsConversations_NAT008) {
    using enum TcpState;
    using enum TcpAction;
    const Conversation conversations[] = {
        {"client closes first",
         SynSent,
         {{R, kSynAck, SynReceived, Note},
          {F, kAck, Established, Verify},
          {F, kData, Established},
          {R, kData, Established},
          {F, kFin, FinForward},
          {R, kAck, FinForward},
          {R, kData, FinForward},
          {R, kFin, TimeWait, End},
          {F, kAck, TimeWait}}},
        {"server closes first",
         Established,
         {{R, kFin, FinReverse},
          {F, kAck, FinReverse},
          {F, kData, FinReverse},
          {F, kFin, TimeWait, End},
          {R, kAck, TimeWait}}},
        {"both close at once",
         Established,
         {{F, kFin, FinForward}, {R, kFin, TimeWait, End}, {F, kAck, TimeWait}, {R, kAck, TimeWait}}},
        {"a FIN is sent again",
         Established,
         {{F, kFin, FinForward}, {F, kFin, FinForward}, {R, kFin, TimeWait, End}, {R, kFin, TimeWait}}},
        {"SYN and SYN+ACK are sent again",
         SynSent,
         {{F, kSyn, SynSent},
          {R, kSynAck, SynReceived, Note},
          {F, kSyn, SynReceived},
          {R, kSynAck, SynReceived, Note},
          {F, kAck, Established, Verify},
          {R, kSynAck, Established},
          {F, kAck, Established},
          {R, kAck, Established}}},
        {"a sender that sees nothing of the backend's only has its ACK numbers verified",
         SynReceived,
         {{F, kAck, Established, Verify}}},
        {"behind a RST of its own, too",
         SynReceived,
         {{F, kRst, RstForward, End}, {F, kData, Established, Verify}}},
        {"the answer to another SYN is noted as well",
         SynReceived,
         {{F, kSyn, SynReceived}, {R, kAck, SynReceived, Note}}},
        {"the answer to a FIN is a FIN", FinForward, {{R, kFin, TimeWait, End}, {F, kAck, TimeWait}}},
        {"the client's first segment is a FIN (its ACK was lost before the gateway)",
         SynReceived,
         {{F, kFin, FinForward, Verify}, {R, kAck, FinForward}}},
        {"simultaneous open",
         SynSent,
         {{R, kSyn, SynReceived, Note},
          {F, kSynAck, Established, Verify},
          {R, kSynAck, Established},
          {F, kSynAck, Established},
          {F, kAck, Established}}},
        {"the port is closed", SynSent, {{R, kRstAck, Closed, End}, {F, kSyn, Closed, Reopen}}},
        {"the client gives up, and the backend has not received its RST",
         SynReceived,
         {{F, kRst, RstForward, End},
          {R, kSynAck, SynReceived, Revive},
          {F, kRst, RstForward, End},
          {R, kRst, Closed}}},
        {"the backend gives up",
         SynReceived,
         {{R, kRst, RstReverse, End}, {R, kRst, Closed}, {F, kSyn, Closed, Reopen}}},
        {"a RST in the client's name: the client acknowledges what the backend sends behind it",
         Established,
         {{F, kRst, RstForward, End},
          {R, kData, RstForward, Note},
          {F, kAck, Established, Verify},
          {R, kData, Established}}},
        {"a RST in the backend's name",
         Established,
         {{R, kRst, RstReverse, End},
          {R, kAck, RstReverse, Note},
          {F, kData, Established, Verify},
          {R, kAck, Established}}},
        {"many RSTs in the client's name end the connection once",
         Established,
         {{F, kRst, RstForward, End},
          {F, kRst, RstForward},
          {F, kRst, RstForward},
          {F, kFin, FinForward, Verify},
          {R, kFin, TimeWait, End}}},
        {"the backend closes behind a RST in its name",
         Established,
         {{R, kRst, RstReverse, End}, {R, kFin, FinReverse, Revive}, {F, kFin, TimeWait, End}}},
        {"a true RST of the client: what the backend has under way is passed, no more",
         FinReverse,
         {{F, kRst, RstForward, End},
          {R, kFin, RstForward},
          {R, kAck, RstForward, Note},
          {R, kRst, Closed},
          {F, kSyn, Closed, Reopen}}},
        {"a true RST of the backend: what the client has under way is answered by the next one",
         Established,
         {{R, kRst, RstReverse, End}, {R, kRst, Closed}, {F, kSyn, Closed, Reopen}}},
        {"forged RST and SYN do not exchange a connection that lives: the backend challenges, and the client "
         "goes on",
         Established,
         {{F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kAck, RstForward, Note},
          {F, kData, Established, Verify}}},
        {"behind a true RST the same client may begin again at the same backend",
         Established,
         {{F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kSynAck, SynReceived, Revive},
          {F, kAck, Established, Verify}}},
        {"or elsewhere, where that one refuses",
         Established,
         {{F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kRstAck, Closed},
          {F, kSyn, Closed, Reopen}}},
        {"a RST in the client's name meets the handshake, and the client has not received the SYN+ACK yet",
         SynReceived,
         {{F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kSynAck, SynReceived, Revive},
          {F, kAck, Established, Verify}}},
        {"a RST in the backend's name meets the handshake, and the backend goes on",
         SynReceived,
         {{R, kRst, RstReverse, End}, {R, kSynAck, SynReceived, Revive}, {F, kAck, Established, Verify}}},
        {"or the client does", SynReceived, {{R, kRst, RstReverse, End}, {F, kData, Established, Verify}}},
        {"a RST from each side ends a handshake",
         SynReceived,
         {{F, kRst, RstForward, End}, {R, kRst, Closed}}},
        {"the backend sends data in the wake of both SYNs: TFO (RFC 7413)",
         SynSent,
         {{R, kSynAck, SynReceived, Note}, {R, kData, SynReceived, Note}, {F, kData, Established, Verify}}},
        {"simultaneous open, the client's SYN is answered first",
         SynSent,
         {{R, kSyn, SynReceived, Note}, {R, kSynAck, SynReceived, Note}, {F, kSynAck, Established, Verify}}},
        {"the tuple is used again", TimeWait, {{F, kAck, TimeWait}, {F, kSyn, TimeWait, Reopen}}},
        {"the backend cannot reopen", TimeWait, {{R, kSyn, TimeWait, Invalid}}},
        {"the client restarted, the backend did not: challenge ACK, then RST",
         Established,
         {{F, kSyn, Established},
          {R, kAck, Established},
          {F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kSynAck, SynReceived, Revive},
          {F, kAck, Established, Verify}}},
        {"TIME-WAIT is not for a RST to end (RFC 1337)",
         TimeWait,
         {{F, kRst, TimeWait}, {R, kRst, TimeWait}, {F, kSyn, TimeWait, Reopen}}},
        {"the backend challenges a SYN on a tuple that it still knows, the client's RST clears it for the "
         "next SYN",
         SynSent,
         {{R, kAck, SynSent},
          {F, kRst, SynSent},
          {F, kSyn, SynSent},
          {R, kSynAck, SynReceived, Note},
          {F, kAck, Established, Verify}}},
        {"half closed is no reason to reopen", FinForward, {{F, kSyn, FinForward}, {R, kAck, FinForward}}},
        {"nothing but a SYN comes first from a client",
         SynSent,
         {{F, kAck, SynSent, Invalid}, {F, kFin, SynSent, Invalid}, {F, kSynAck, SynSent, Invalid}}},
        {"under reset all is answered, but a new connection is let through",
         Resetting,
         {{F, kAck, Resetting, Reset},
          {R, kData, Resetting, Reset},
          {F, kFin, Resetting, Reset},
          {R, kSynAck, Resetting, Reset},
          {F, kSynAck, Resetting, Invalid},
          {R, kSyn, Resetting, Invalid},
          {R, kRst, Resetting},
          {F, kSyn, Resetting, Reopen}}},
        {"picked up, and the backend has it",
         PickedUp,
         {{F, kData, PickedUp},
          {R, kAck, SynReceived, Note},
          {F, kData, Established, Verify},
          {R, kAck, Established}}},
        {"picked up, and the backend has it not", PickedUp, {{R, kRst, Closed, End}, {F, kRst, Closed}}},
        {"picked up in the handshake",
         PickedUp,
         {{R, kSynAck, SynReceived, Note}, {F, kAck, Established, Verify}}},
        {"picked up at its end",
         PickedUp,
         {{F, kFin, PickedUp}, {R, kAck, SynReceived, Note}, {R, kFin, FinReverse}}},
        {"picked up when the backend ends it", PickedUp, {{R, kFin, FinReverse}, {F, kFin, TimeWait, End}}},
        {"picked up, and a RST in the client's name", PickedUp, {{F, kRst, Closed, End}, {F, kAck, Closed}}},
        {"picked up, and a SYN in the client's name: the backend challenges it",
         PickedUp,
         {{F, kSyn, PickedUp}, {R, kAck, SynReceived, Note}}},
        {"SYN from the backend after the handshake", Established, {{R, kSyn, Established, Invalid}}},
    };
    for (const Conversation& c : conversations) {
        TcpState state = c.start;
        for (size_t i = 0; i < c.packets.size(); ++i) {
            const TcpStep got = step(state, c.packets[i].direction, c.packets[i].flags);
            EXPECT_EQ(got.next, c.packets[i].after)
                << c.name << ", packet " << i << ": " << to_string(got.next);
            // A Pass with a SYN is an Offer, one with a FIN of the client a Finish; the table does not repeat
            // it.
            const bool passes = c.packets[i].action == TcpAction::Pass;
            const bool offers = passes && c.packets[i].flags.has(TcpFlags::kSyn);
            const bool finishes =
                passes && c.packets[i].flags.has(TcpFlags::kFin) && c.packets[i].direction == F;
            EXPECT_EQ(got.action, offers     ? TcpAction::Offer
                                  : finishes ? TcpAction::Finish
                                             : c.packets[i].action)
                << c.name << ", packet " << i;
            state = got.next;
        }
    }
}

TEST(TcpState, NoStateAcceptsFlagsThatNoStackSends) {
    const TcpFlags nonsense[] = {kNull,
                                 kXmas,
                                 {TcpFlags::kFin},
                                 {TcpFlags::kSyn | TcpFlags::kFin},
                                 {TcpFlags::kSyn | TcpFlags::kRst},
                                 {TcpFlags::kRst | TcpFlags::kFin},
                                 {0xff},
                                 {TcpFlags::kPsh}};
    for (uint8_t state = 0; state < kTcpStates; ++state) {
        for (const Direction direction : {F, R}) {
            for (const TcpFlags flags : nonsense) {
                const TcpStep got = step(static_cast<TcpState>(state), direction, flags);
                EXPECT_EQ(got.action, TcpAction::Invalid) << int{flags.bits};
                EXPECT_EQ(got.next, static_cast<TcpState>(state))
                    << "an invalid packet must not move the state";
            }
        }
    }
}

// Other header fields (ECN negotiation on a SYN, urgent data) do not change the class.
TEST(TcpState, AccompanyingFlagsDoNotMatter) {
    for (const uint8_t extra : {TcpFlags::kPsh, TcpFlags::kEce, TcpFlags::kCwr, TcpFlags::kUrg}) {
        for (const TcpFlags flags : {kSyn, kSynAck, kAck, kFin, kRst, kNull}) {
            EXPECT_EQ(classify({static_cast<uint8_t>(flags.bits | extra)}), classify(flags));
        }
    }
    EXPECT_EQ(classify({TcpFlags::kSyn | TcpFlags::kEce | TcpFlags::kCwr}),
              TcpFlagClass::Syn);  // RFC 3168, 6.1.1
}

TEST(TcpState, OnlyASynAloneIsOfItsClass) {
    for (int bits = 0; bits < 256; ++bits) {
        const TcpFlags flags{static_cast<uint8_t>(bits)};
        const bool expected =
            flags.has(TcpFlags::kSyn) && !flags.any(TcpFlags::kAck | TcpFlags::kRst | TcpFlags::kFin);
        EXPECT_EQ(classify(flags) == TcpFlagClass::Syn, expected) << bits;
    }
}

// A connection that a RST has ended records the side that sent the RST, from the handshake on; a finished one
// does not. While only the client has sent packets, its RST answers a challenge ACK, and its next SYN belongs
// to the same connection; the backend's RST refuses the connection. A connection under reset by an order
// stays so, because the RST may be the answer to a probe.
TEST(TcpState, ARstEndsWhatIsOpenOnceAndIsPassed_NAT006) {
    using enum TcpState;
    const struct {
        TcpState before, after_clients, after_backends;
    } cases[] = {
        {SynSent, SynSent, Closed},
        {SynReceived, RstForward, RstReverse},
        {PickedUp, Closed, Closed},
        {Established, RstForward, RstReverse},
        {FinForward, RstForward, RstReverse},
        {FinReverse, RstForward, RstReverse},
        {TimeWait, TimeWait, TimeWait},
        {Closed, Closed, Closed},
        {Resetting, Resetting, Resetting},
        {RstForward, RstForward, Closed},
        {RstReverse, Closed, Closed},
        {FinForwardProbed, RstForwardProbed, RstReverse},
        {FinReverseProbed, RstForward, RstReverseProbed},
        {RstForwardProbed, RstForwardProbed, Closed},
        {RstReverseProbed, Closed, Closed},
        {FinForwardProbedAgain, RstForwardProbedAgain, RstReverse},
        {FinReverseProbedAgain, RstForward, RstReverseProbedAgain},
        {RstForwardProbedAgain, RstForwardProbedAgain, Closed},
        {RstReverseProbedAgain, Closed, Closed},
    };
    static_assert(std::size(cases) == kTcpStates);
    for (const auto& c : cases) {
        for (const TcpFlags flags : {kRst, kRstAck}) {
            for (const auto& [direction, after] :
                 {std::pair{F, c.after_clients}, std::pair{R, c.after_backends}}) {
                const TcpStep got = step(c.before, direction, flags);
                EXPECT_EQ(got.next, after) << to_string(c.before);
                const bool ends = is_open(c.before) && !is_open(after);
                EXPECT_EQ(got.action, ends ? TcpAction::End : TcpAction::Pass)
                    << to_string(c.before) << ": the other side must hear of it";
            }
        }
    }
}

// After a FIN, only the answer of the side that sent it proves that the connection is alive; the other side
// would always answer.
TEST(TcpState, BehindAFinThatWasProbedItsOwnSideBringsTheConnectionBack_NAT006) {
    using enum TcpState;
    const struct {
        TcpState probed;
        Direction own;
        TcpState back;
    } cases[] = {{FinForwardProbed, F, FinForward},
                 {FinForwardProbedAgain, F, FinForward},
                 {FinReverseProbed, R, FinReverse},
                 {FinReverseProbedAgain, R, FinReverse}};
    for (const auto& c : cases) {
        EXPECT_EQ(step(c.probed, c.own, kAck).next, Established) << to_string(c.probed);
        EXPECT_EQ(step(c.probed, c.own, kFin).next, c.back) << "the FIN again";
        EXPECT_EQ(step(c.probed, opposite(c.own), kAck).next, c.back) << "traffic, and no answer";
        EXPECT_EQ(step(c.probed, opposite(c.own), kFin).next, TimeWait);
    }
}

// For any sequence of packets: the sum of what End subtracts and Revive adds is never above one and never
// below zero.
TEST(TcpState, EndAndReviveKeepTheCountOfOpenFlowsAtOneOrNone) {
    const TcpFlags all[] = {kSyn, kSynAck, kAck, kData, kFin, kRst, kRstAck, kNull};
    test::Prng prng(test::seed());
    for (int conversation = 0; conversation < 2'000; ++conversation) {
        TcpState state = kTcpOpeningState;
        int open = 1;
        for (int packet = 0; packet < 60; ++packet) {
            const TcpStep got =
                step(state, static_cast<Direction>(prng.below(2)), all[prng.below(std::size(all))]);
            if (got.action == TcpAction::Reopen) {
                EXPECT_EQ(open, 0) << "only what is over may be opened again";
                break;
            }
            if (got.action == TcpAction::Verify && prng.one_in(2)) {
                continue;  // the ACK number is not allowed
            }
            const bool opens =
                got.action == TcpAction::Revive || (got.action == TcpAction::Verify && !is_open(state));
            open += opens ? 1 : got.action == TcpAction::End ? -1 : 0;
            state = got.next;
            ASSERT_EQ(open, is_open(state) ? 1 : 0) << to_string(state);
        }
    }
}

TEST(DatagramState, TheFirstAnswerMakesItTwoWay_NAT008) {
    EXPECT_EQ(step(DatagramState::OneWay, F), DatagramState::OneWay);
    EXPECT_EQ(step(DatagramState::OneWay, R), DatagramState::TwoWay);
    EXPECT_EQ(step(DatagramState::TwoWay, F), DatagramState::TwoWay);
}

TEST(Connection, StateIsNamedByProtocol) {
    Connection connection;
    connection.state = static_cast<uint8_t>(TcpState::SynReceived);
    EXPECT_EQ(connection.state_name(), "syn-received");
    connection.forward.protocol = Protocol::Udp;
    EXPECT_EQ(connection.state_name(), "two-way");
}

}  // namespace tcp_state_test
}  // namespace penstock::conn
