#include "dataplane/conn/tcp_state.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>
#include <vector>

#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::conn {
namespace {

using packet::TcpFlags;
constexpr TcpFlags kSyn{TcpFlags::kSyn}, kSynAck{TcpFlags::kSyn | TcpFlags::kAck}, kAck{TcpFlags::kAck};
constexpr TcpFlags kData{TcpFlags::kAck | TcpFlags::kPsh}, kFin{TcpFlags::kFin | TcpFlags::kAck}, kRst{TcpFlags::kRst};
constexpr TcpFlags kRstAck{TcpFlags::kRst | TcpFlags::kAck}, kNull{0}, kXmas{TcpFlags::kFin | TcpFlags::kPsh | TcpFlags::kUrg};
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
         {{R, kSynAck, SynReceived},
          {F, kAck, Unheard},
          {F, kData, Unheard},
          {R, kData, Established, Hear},
          {F, kFin, FinForward},
          {R, kAck, FinForward},
          {R, kData, FinForward},
          {R, kFin, TimeWait, End},
          {F, kAck, TimeWait}}},
        {"server closes first",
         Established,
         {{R, kFin, FinReverse}, {F, kAck, FinReverse}, {F, kData, FinReverse}, {F, kFin, TimeWait, End}, {R, kAck, TimeWait}}},
        {"both close at once", Established, {{F, kFin, FinForward}, {R, kFin, TimeWait, End}, {F, kAck, TimeWait}, {R, kAck, TimeWait}}},
        {"a FIN is sent again", Established, {{F, kFin, FinForward}, {F, kFin, FinForward}, {R, kFin, TimeWait, End}, {R, kFin, TimeWait}}},
        {"SYN and SYN+ACK are sent again",
         SynSent,
         {{F, kSyn, SynSent},
          {R, kSynAck, SynReceived},
          {F, kSyn, SynReceived},
          {R, kSynAck, SynReceived},
          {F, kAck, Unheard},
          {R, kSynAck, Unheard},
          {F, kAck, Unheard},
          {R, kAck, Established, Hear},
          {R, kSynAck, Established}}},
        {"who sees nothing of the endpoint's can write all that a client says",
         SynSent,
         {{R, kSynAck, SynReceived},
          {F, kAck, Unheard},
          {F, kData, Unheard},
          {R, kSynAck, Unheard},
          {F, kFin, FinUnheard},
          {F, kAck, FinUnheard},
          {R, kSynAck, FinUnheard},
          {F, kRst, RstForward, End},
          {F, kAck, Unheard, Revive},
          {F, kRst, RstForward, End},
          {F, kFin, FinUnheard, Revive}}},
        {"the backend knows nothing of what was written in the client's name", Unheard, {{R, kRst, RstReverse, End}}},
        {"a SYN that is sent again behind the ACK", Unheard, {{F, kSyn, Unheard}, {R, kAck, Established, Hear}}},
        {"a request and the end of it, then the answer and its end",
         Unheard,
         {{F, kData, Unheard}, {F, kFin, FinUnheard}, {R, kAck, FinForward, Hear}, {R, kData, FinForward}, {R, kFin, TimeWait, End}}},
        {"the answer to a FIN is a FIN", FinUnheard, {{R, kFin, TimeWait, End}, {F, kAck, TimeWait}}},
        {"the backend has nothing to say but goodbye", Unheard, {{R, kFin, FinReverse}, {F, kFin, TimeWait, End}}},
        {"a connection that is not wanted is reset", FinUnheard, {{R, kRst, RstReverse, End}}},
        {"the client's first segment is a FIN (its ACK was lost before us)",
         SynReceived,
         {{F, kFin, FinUnheard}, {R, kAck, FinForward, Hear}}},
        {"simultaneous open",
         SynSent,
         {{R, kSyn, SynReceived}, {F, kSynAck, SynReceived}, {R, kSynAck, SynReceived}, {F, kAck, Unheard}, {R, kAck, Established, Hear}}},
        {"the port is closed", SynSent, {{R, kRstAck, Closed, End}, {F, kSyn, Closed, Reopen}}},
        {"the client gives up, and the backend hears of it",
         SynReceived,
         {{F, kRst, RstForward, End}, {R, kSynAck, SynReceived, Revive}, {F, kRst, RstForward, End}, {R, kRst, Closed}}},
        {"the backend gives up",
         SynReceived,
         {{R, kRst, RstReverse, End}, {F, kAck, RstReverse}, {R, kRst, Closed}, {F, kSyn, Closed, Reopen}}},
        {"a RST in the client's name: only the client shows that it was not its own",
         Established,
         {{F, kRst, RstForward, End}, {R, kData, RstForward}, {F, kAck, Unheard, Revive}, {R, kData, Established, Hear}}},
        {"a RST in the backend's name",
         Established,
         {{R, kRst, RstReverse, End},
          {F, kData, RstReverse},
          {R, kAck, Unheard, Revive},
          {F, kData, Unheard},
          {R, kAck, Established, Hear}}},
        {"many RSTs in the client's name end the connection once",
         Established,
         {{F, kRst, RstForward, End},
          {F, kRst, RstForward},
          {F, kRst, RstForward},
          {F, kFin, FinUnheard, Revive},
          {R, kFin, TimeWait, End}}},
        {"the backend closes behind a RST in its name",
         Established,
         {{R, kRst, RstReverse, End}, {R, kFin, FinReverse, Revive}, {F, kFin, TimeWait, End}}},
        {"a true RST of the client: what the backend has under way is passed, no more",
         FinReverse,
         {{F, kRst, RstForward, End}, {R, kFin, RstForward}, {R, kAck, RstForward}, {R, kRst, Closed}, {F, kSyn, Closed, Reopen}}},
        {"a true RST of the backend: what the client has under way is answered by the next one",
         Established,
         {{R, kRst, RstReverse, End}, {F, kData, RstReverse}, {R, kRst, Closed}, {F, kSyn, Closed, Reopen}}},
        {"forged RST and SYN do not exchange a connection that lives: the backend challenges, and the client goes on",
         Established,
         {{F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kAck, RstForward},
          {F, kData, Unheard, Revive},
          {R, kAck, Established, Hear}}},
        {"behind a true RST the same client may begin again at the same backend",
         Established,
         {{F, kRst, RstForward, End}, {F, kSyn, RstForward}, {R, kSynAck, SynReceived, Revive}, {F, kAck, Unheard}}},
        {"or elsewhere, where that one refuses",
         Established,
         {{F, kRst, RstForward, End}, {F, kSyn, RstForward}, {R, kRstAck, Closed}, {F, kSyn, Closed, Reopen}}},
        {"a RST in the client's name meets the handshake, and the client goes on",
         SynReceived,
         {{F, kRst, RstForward, End}, {F, kAck, Unheard, Revive}, {R, kData, Established, Hear}}},
        {"or has not had the SYN+ACK yet",
         SynReceived,
         {{F, kRst, RstForward, End}, {F, kSyn, RstForward}, {R, kSynAck, SynReceived, Revive}, {F, kAck, Unheard}}},
        {"a RST in the backend's name meets the handshake, and the backend goes on",
         SynReceived,
         {{R, kRst, RstReverse, End}, {F, kAck, RstReverse}, {R, kSynAck, SynReceived, Revive}, {F, kAck, Unheard}}},
        {"or has had the client's ACK",
         SynReceived,
         {{R, kRst, RstReverse, End}, {F, kData, RstReverse}, {R, kAck, Unheard, Revive}, {R, kAck, Established, Hear}}},
        {"a RST from each side ends a handshake", SynReceived, {{F, kRst, RstForward, End}, {R, kRst, Closed}}},
        {"data in both SYNs' wake: TFO (RFC 7413)",
         SynSent,
         {{R, kSynAck, SynReceived}, {R, kData, SynReceived}, {F, kData, Unheard}, {R, kAck, Established, Hear}}},
        {"simultaneous open, the client's SYN is answered first",
         SynSent,
         {{R, kSyn, SynReceived}, {R, kSynAck, SynReceived}, {F, kSynAck, SynReceived}, {F, kAck, Unheard}}},
        {"the tuple is used again", TimeWait, {{F, kAck, TimeWait}, {F, kSyn, TimeWait, Reopen}}},
        {"the backend cannot reopen", TimeWait, {{R, kSyn, TimeWait, Invalid}}},
        {"the client restarted, the backend did not: challenge ACK, then RST",
         Established,
         {{F, kSyn, Established},
          {R, kAck, Established},
          {F, kRst, RstForward, End},
          {F, kSyn, RstForward},
          {R, kSynAck, SynReceived, Revive},
          {F, kAck, Unheard}}},
        {"TIME-WAIT is not for a RST to end (RFC 1337)", TimeWait, {{F, kRst, TimeWait}, {R, kRst, TimeWait}, {F, kSyn, TimeWait, Reopen}}},
        {"the backend challenges a SYN on a tuple that it still knows, the client's RST clears it for the next SYN",
         SynSent,
         {{R, kAck, SynSent}, {F, kRst, SynSent}, {F, kSyn, SynSent}, {R, kSynAck, SynReceived}, {F, kAck, Unheard}}},
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
         {{F, kData, PickedUp}, {R, kAck, Unheard}, {F, kData, Unheard}, {R, kAck, Established, Hear}}},
        {"picked up, and the backend has it not", PickedUp, {{R, kRst, RstReverse, End}, {F, kRst, Closed}}},
        {"picked up in the handshake", PickedUp, {{R, kSynAck, SynReceived}, {F, kAck, Unheard}, {R, kData, Established, Hear}}},
        {"picked up at its end", PickedUp, {{F, kFin, FinUnheard}, {R, kAck, FinForward, Hear}, {R, kFin, TimeWait, End}}},
        {"picked up when the backend ends it", PickedUp, {{R, kFin, FinReverse}, {F, kFin, TimeWait, End}}},
        {"picked up, and a RST in the client's name", PickedUp, {{F, kRst, RstForward, End}, {F, kAck, Unheard, Revive}}},
        {"picked up, and a SYN in the client's name: the backend challenges it", PickedUp, {{F, kSyn, PickedUp}, {R, kAck, Unheard}}},
        {"SYN+ACK from the client after the handshake", Established, {{F, kSynAck, Established, Invalid}}},
        {"the same before the backend has spoken", Unheard, {{F, kSynAck, Unheard, Invalid}, {R, kSyn, Unheard, Invalid}}},
    };
    for (const Conversation& c : conversations) {
        TcpState state = c.start;
        for (size_t i = 0; i < c.packets.size(); ++i) {
            const TcpStep got = step(state, c.packets[i].direction, c.packets[i].flags);
            EXPECT_EQ(got.next, c.packets[i].after) << c.name << ", packet " << i << ": " << to_string(got.next);
            // What passes with a SYN is an Offer, which the table need not say.
            const bool offers = c.packets[i].action == TcpAction::Pass && c.packets[i].flags.has(TcpFlags::kSyn);
            EXPECT_EQ(got.action, offers ? TcpAction::Offer : c.packets[i].action) << c.name << ", packet " << i;
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
                EXPECT_EQ(got.next, static_cast<TcpState>(state)) << "an invalid packet must not move the state";
            }
        }
    }
}

// Whatever else the header says (ECN negotiation on a SYN, urgent data), the class is the same.
TEST(TcpState, AccompanyingFlagsDoNotMatter) {
    for (const uint8_t extra : {TcpFlags::kPsh, TcpFlags::kEce, TcpFlags::kCwr, TcpFlags::kUrg}) {
        for (const TcpFlags flags : {kSyn, kSynAck, kAck, kFin, kRst, kNull}) {
            EXPECT_EQ(classify({static_cast<uint8_t>(flags.bits | extra)}), classify(flags));
        }
    }
    EXPECT_EQ(classify({TcpFlags::kSyn | TcpFlags::kEce | TcpFlags::kCwr}), TcpFlagClass::Syn);  // RFC 3168, 6.1.1
}

TEST(TcpState, OnlyASynAloneIsOfItsClass) {
    for (int bits = 0; bits < 256; ++bits) {
        const TcpFlags flags{static_cast<uint8_t>(bits)};
        const bool expected = flags.has(TcpFlags::kSyn) && !flags.any(TcpFlags::kAck | TcpFlags::kRst | TcpFlags::kFin);
        EXPECT_EQ(classify(flags) == TcpFlagClass::Syn, expected) << bits;
    }
}

// A connection that a RST has ended remembers whose it was, from the handshake on; one that is over does not. While the client alone has
// spoken, its RST answers a challenge ACK, and its next SYN belongs to the same connection; the backend's refuses it. What an order resets
// goes on being reset, because the RST may be the answer to a probe.
TEST(TcpState, ARstEndsWhatIsOpenOnceAndIsPassed_NAT006) {
    using enum TcpState;
    const struct {
        TcpState before, after_clients, after_backends;
    } cases[] = {
        {SynSent, SynSent, Closed},
        {SynReceived, RstForward, RstReverse},
        {PickedUp, RstForward, RstReverse},
        {Unheard, RstForward, RstReverse},
        {Established, RstForward, RstReverse},
        {FinUnheard, RstForward, RstReverse},
        {FinForward, RstForward, RstReverse},
        {FinReverse, RstForward, RstReverse},
        {TimeWait, TimeWait, TimeWait},
        {Closed, Closed, Closed},
        {Resetting, Resetting, Resetting},
        {RstForward, RstForward, Closed},
        {RstReverse, Closed, Closed},
    };
    static_assert(std::size(cases) == kTcpStates);
    for (const auto& c : cases) {
        for (const TcpFlags flags : {kRst, kRstAck}) {
            for (const auto& [direction, after] : {std::pair{F, c.after_clients}, std::pair{R, c.after_backends}}) {
                const TcpStep got = step(c.before, direction, flags);
                EXPECT_EQ(got.next, after) << to_string(c.before);
                const bool ends = is_open(c.before) && !is_open(after);
                EXPECT_EQ(got.action, ends ? TcpAction::End : TcpAction::Pass) << to_string(c.before) << ": the other side must hear of it";
            }
        }
    }
}

// Whatever follows one another: what End subtracts and Revive adds is never more than one, and never less than none.
TEST(TcpState, EndAndReviveKeepTheCountOfOpenFlowsAtOneOrNone) {
    const TcpFlags all[] = {kSyn, kSynAck, kAck, kData, kFin, kRst, kRstAck, kNull};
    test::Prng prng(test::seed());
    for (int conversation = 0; conversation < 2'000; ++conversation) {
        TcpState state = kTcpOpeningState;
        int open = 1;
        for (int packet = 0; packet < 60; ++packet) {
            const TcpStep got = step(state, static_cast<Direction>(prng.below(2)), all[prng.below(std::size(all))]);
            if (got.action == TcpAction::Reopen) {
                EXPECT_EQ(open, 0) << "only what is over may be opened again";
                break;
            }
            open += got.action == TcpAction::Revive ? 1 : got.action == TcpAction::End ? -1 : 0;
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

}  // namespace
}  // namespace penstock::conn
