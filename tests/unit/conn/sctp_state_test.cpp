// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/sctp_state.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::conn {
namespace sctp_state_test {

using packet::SctpEvent;
using SctpState::BackendRestarting, SctpState::Closed, SctpState::CookieEchoed, SctpState::CookieWait,
    SctpState::Established, SctpState::Restarting, SctpState::ShutdownAcked;
constexpr Direction F = Direction::Forward, R = Direction::Reverse;
// The tag chosen by the client, hence that of packets to the client.
constexpr uint32_t kClients = 0xc11e'0001;
constexpr uint32_t kBackends = 0xbac2'0002;
constexpr uint32_t kNewClients = 0xc11e'1003, kNewBackends = 0xbac2'1004;
constexpr uint32_t kForged = 0x0666'0666;

constexpr SctpPacket init(uint32_t wants) {
    return {SctpEvent::Init, false, 0, wants};
}
constexpr SctpPacket with(SctpEvent event, uint32_t tag) {
    return {event, false, tag, 0};
}
constexpr SctpPacket reflecting(SctpEvent event, uint32_t tag) {
    return {event, true, tag, 0};
}

struct Seen {
    Direction direction;
    SctpPacket packet;
    SctpState after;
    SctpAction action = SctpAction::Pass;
};
struct Conversation {
    const char* name;
    std::vector<Seen> packets;
};

// Starts after the client's INIT.
void follow(const Conversation& conversation) {
    Association association = opened_by(kClients);
    size_t number = 0;
    for (const Seen& seen : conversation.packets) {
        const SctpStep step = conn::step(association, seen.direction, seen.packet);
        EXPECT_EQ(step.next.state, seen.after)
            << conversation.name << ", packet " << number << ": " << to_string(step.next.state);
        EXPECT_EQ(step.action, seen.action) << conversation.name << ", packet " << number;
        if (step.action != SctpAction::Pass) {
            EXPECT_EQ(step.next, association)
                << conversation.name << ", packet " << number << ": what does not pass moves nothing";
        }
        association = step.next;
        ++number;
    }
}

std::vector<Seen> opened(std::vector<Seen> rest) {
    using enum SctpEvent;
    std::vector<Seen> all{{R, with(InitAck, kClients), SctpState::CookieWait},
                          {F, with(CookieEcho, kBackends), SctpState::CookieEchoed},
                          {R, with(CookieAck, kClients), SctpState::Established}};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

TEST(SctpState, FollowsConversations_SCTP002_NAT008) {
    using enum SctpEvent;
    const Conversation conversations[] = {
        {"the client closes", opened({{F, with(None, kBackends), Established},
                                      {R, with(None, kClients), Established},
                                      {F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                                      {R, with(None, kClients), SctpState::Shutdown},
                                      {R, with(ShutdownAck, kClients), ShutdownAcked},
                                      {F, with(ShutdownComplete, kBackends), Closed},
                                      {R, with(ShutdownAck, kClients), Closed}})},
        {"the backend closes", opened({{R, with(SctpEvent::Shutdown, kClients), SctpState::Shutdown},
                                       {F, with(ShutdownAck, kBackends), ShutdownAcked},
                                       {R, with(ShutdownComplete, kClients), Closed}})},
        {"both close at once", opened({{R, with(SctpEvent::Shutdown, kClients), SctpState::Shutdown},
                                       {F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                                       {F, with(ShutdownAck, kBackends), ShutdownAcked},
                                       {R, with(ShutdownAck, kClients), ShutdownAcked},
                                       {F, with(ShutdownComplete, kBackends), Closed}})},
        {"SHUTDOWN COMPLETE of a client that has forgotten it",
         opened({{F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                 {R, with(ShutdownAck, kClients), ShutdownAcked},
                 {F, reflecting(ShutdownComplete, kClients), Closed}})},
        {"the client aborts",
         opened({{F, with(Abort, kBackends), Closed}, {R, with(None, kClients), Closed}})},
        {"the backend aborts", opened({{R, with(Abort, kClients), Closed}})},
        {"the backend has forgotten it",
         opened({{F, with(None, kBackends), Established}, {R, reflecting(Abort, kBackends), Closed}})},
        {"the backend refuses", {{R, with(Abort, kClients), Closed}}},
        {"chunks of the handshake are sent again",
         {{F, init(kClients), CookieWait},
          {R, with(InitAck, kClients), CookieWait},
          {R, with(InitAck, kClients), CookieWait},
          {F, with(CookieEcho, kBackends), CookieEchoed},
          {F, with(CookieEcho, kBackends), CookieEchoed},
          {R, with(CookieAck, kClients), Established},
          {F, with(CookieEcho, kBackends), Established},
          {R, with(CookieAck, kClients), Established}}},
        {"the backend answers each of two INITs, and the client takes the first",
         {{R, with(InitAck, kClients), CookieWait},
          {F, init(kClients), CookieWait},
          {F, with(CookieEcho, kBackends), CookieEchoed},
          {R, with(InitAck, kClients), CookieEchoed},
          {R, with(CookieAck, kClients), Established},
          {F, with(None, kBackends), Established}}},
        {"the client gives up and begins anew",
         {{F, init(kNewClients), CookieWait},
          {R, with(InitAck, kNewClients), CookieWait},
          {F, with(CookieEcho, kBackends), CookieEchoed},
          {R, with(CookieAck, kNewClients), Established},
          {R, with(None, kNewClients), Established}}},
        {"both begin at once (RFC 9260, 5.2.1)",
         {{R, init(kBackends), CookieWait},
          {F, with(InitAck, kBackends), CookieWait},
          {R, with(InitAck, kClients), CookieWait},
          {R, with(CookieEcho, kClients), CookieWait},
          {F, with(CookieEcho, kBackends), CookieEchoed},
          {F, with(CookieAck, kBackends), CookieEchoed},
          {R, with(CookieAck, kClients), Established}}},
        {"data overtakes the COOKIE ACK",
         {{R, with(InitAck, kClients), CookieWait},
          {F, with(CookieEcho, kBackends), CookieEchoed},
          {R, with(None, kClients), CookieEchoed},
          {R, with(CookieAck, kClients), Established}}},
        {"a tuple used again",
         opened({{F, with(Abort, kBackends), Closed}, {F, init(kNewClients), Closed, SctpAction::Reopen}})},
        {"an INIT of the backend reopens nothing",
         opened({{F, with(Abort, kBackends), Closed}, {R, init(kNewBackends), Closed, SctpAction::Stray}})},
        {"both begin at once, and the client has answered before it asked",
         {{R, init(kBackends), CookieWait},
          {R, with(CookieEcho, kClients), CookieWait},
          {F, with(CookieAck, kForged), CookieWait},
          {F, with(CookieAck, kBackends), Established},
          {F, with(None, kForged), Established, SctpAction::WrongTag},
          {F, with(Abort, kBackends), Closed}}},
    };
    for (const Conversation& conversation : conversations) {
        follow(conversation);
    }
}

TEST(SctpState, NobodyMovesWhatHeCannotSee_SCTP002) {
    using enum SctpEvent;
    for (const Direction from : {F, R}) {
        const uint32_t right = from == F ? kBackends : kClients;
        for (const SctpEvent event :
             {None, CookieAck, SctpEvent::Shutdown, ShutdownAck, ShutdownComplete, Abort}) {
            follow({"a forged tag", opened({{from, with(event, kForged), Established, SctpAction::WrongTag},
                                            {from, with(None, right), Established}})});
        }
        for (const SctpEvent event : {ShutdownComplete, Abort}) {
            follow({"a tag that is not reflected but said to be",
                    opened({{from, reflecting(event, right), Established, SctpAction::WrongTag}})});
        }
    }
    follow({"before the handshake is through",
            {{F, with(None, kForged), CookieWait, SctpAction::WrongTag},
             {F, with(Abort, kForged), CookieWait, SctpAction::WrongTag},
             {R, with(Abort, kForged), CookieWait},
             {R, with(CookieAck, kForged), CookieWait},
             {F, with(CookieAck, kForged), CookieWait},
             {R, with(InitAck, kForged), CookieWait},
             {R, with(Abort, kForged), CookieWait},
             {R, with(InitAck, kClients), CookieWait},
             {F, with(CookieEcho, kBackends), CookieEchoed},
             {F, with(Abort, kForged), CookieEchoed},
             {F, with(CookieAck, kForged), CookieEchoed},
             {F, with(Abort, kBackends), CookieEchoed},
             {R, with(Abort, kForged), CookieEchoed},
             {R, with(CookieAck, kClients), Established}}});
}

// Packets with a tag that is not confirmed pass, for their receiver to validate.
TEST(SctpState, WhatIsNotKnownIsNotJudged_SCTP002) {
    using enum SctpEvent;
    follow({"two forged packets ahead of the client's INIT",
            {{F, init(kForged), CookieWait},
             {R, with(InitAck, kForged), CookieWait},
             {F, with(CookieEcho, kForged), CookieEchoed},
             {F, init(kNewClients), CookieEchoed},
             {R, with(InitAck, kNewClients), CookieEchoed},
             {F, with(CookieEcho, kNewBackends), CookieEchoed},
             {R, with(CookieAck, kNewClients), Established},
             {R, with(None, kForged), Established, SctpAction::WrongTag},
             {F, with(Abort, kForged), Established},
             {R, with(Abort, kNewClients), Closed}}});
    follow({"a forged COOKIE ECHO behind the real one",
            {{R, with(InitAck, kClients), CookieWait},
             {F, with(CookieEcho, kBackends), CookieEchoed},
             {F, with(CookieEcho, kForged), CookieEchoed},
             {R, with(CookieAck, kClients), Established},
             {F, with(None, kBackends), Established},
             {F, with(Abort, kForged), Established},
             {R, with(None, kForged), Established, SctpAction::WrongTag}}});
    follow({"a forged INIT ahead of the answer to the real one",
            {{F, init(kForged), CookieWait},
             {R, with(InitAck, kClients), CookieWait},
             {F, with(CookieEcho, kBackends), CookieEchoed},
             {R, with(InitAck, kForged), CookieEchoed},
             {R, with(CookieAck, kClients), Established},
             {R, with(None, kForged), Established, SctpAction::WrongTag}}});
    follow({"a COOKIE ACK that the INIT has not asked for",
            {{R, with(InitAck, kClients), CookieWait},
             {F, with(CookieEcho, kBackends), CookieEchoed},
             {R, with(CookieAck, kForged), Established},
             {R, with(CookieAck, kClients), Established},
             {R, with(Abort, kForged), Established},
             {F, with(Abort, kForged), Established, SctpAction::WrongTag},
             {F, with(Abort, kBackends), Closed}}});
}

// NAT-008. If any sender could restart the idle time of an entry, it could keep the entry for ever.
TEST(SctpState, OnlyWhoKnowsATagKeepsTheEntry_SCTP002_NAT008) {
    using enum SctpEvent;
    const auto shows_life = [](const Association& association, Direction from, const SctpPacket& packet) {
        return step(association, from, packet).shows_life;
    };
    for (uint8_t number = 0; number < kSctpStates; ++number) {
        const Association association{static_cast<SctpState>(number), {kBackends, kClients}};
        for (const Direction from : {F, R}) {
            EXPECT_FALSE(shows_life(association, from, init(kForged))) << to_string(association.state);
            EXPECT_FALSE(shows_life(association, from, init(from == F ? kClients : kBackends)))
                << to_string(association.state);
            for (const SctpEvent event : {InitAck, None, CookieEcho, CookieAck, SctpEvent::Shutdown,
                                          ShutdownAck, ShutdownComplete, Abort}) {
                EXPECT_FALSE(shows_life(association, from, with(event, kForged)))
                    << to_string(association.state);
                EXPECT_FALSE(shows_life(association, from, reflecting(event, kForged)))
                    << to_string(association.state);
            }
        }
    }
    for (const SctpState state : {Established, SctpState::Shutdown, ShutdownAcked, Closed}) {
        EXPECT_TRUE(shows_life({state, {kBackends, kClients}}, F, with(None, kBackends)));
        EXPECT_TRUE(shows_life({state, {kBackends, kClients}}, R, with(None, kClients)));
    }
    // The tag of the side that may have restarted is that of its COOKIE ECHO; the other side's tag is
    // unchanged.
    EXPECT_FALSE(shows_life({Restarting, {kForged, kClients}}, F, with(None, kForged)));
    EXPECT_TRUE(shows_life({Restarting, {kForged, kClients}}, R, with(None, kClients)));
    EXPECT_FALSE(shows_life({BackendRestarting, {kBackends, kForged}}, R, with(None, kForged)));
    EXPECT_TRUE(shows_life({BackendRestarting, {kBackends, kForged}}, F, with(None, kBackends)));
    // If no tag is known, an association that may be alive must stay.
    EXPECT_TRUE(shows_life({Established, {}}, F, with(None, kBackends)));
    EXPECT_TRUE(shows_life({Restarting, {kForged, 0}}, R, with(None, kClients)));
    EXPECT_FALSE(shows_life({Closed, {}}, F, with(None, kBackends)));
}

// An attacker that sends in one side's name, and sees no packets, neither ends an association nor prevents a
// new one. Every packet of the association itself passes, and each exchange restarts the idle time. Tests all
// packets of the attacker, two at a time, at all positions.
class OneForger : public testing::TestWithParam<Direction> {
 protected:
    const Direction name = GetParam();

    std::vector<SctpPacket> packets() const {
        using enum SctpEvent;
        std::vector<SctpPacket> all;
        for (const uint32_t tag : {kForged, kForged + 1}) {
            all.push_back(init(tag));
            for (const SctpEvent event : {InitAck, CookieEcho, CookieAck, None, SctpEvent::Shutdown,
                                          ShutdownAck, ShutdownComplete, Abort}) {
                all.push_back(with(event, tag));
            }
            all.push_back(reflecting(Abort, tag));
            all.push_back(reflecting(ShutdownComplete, tag));
        }
        return all;
    }
    // An endpoint answers any INIT by an INIT ACK, and a packet of an unknown association by an ABORT that
    // reflects its tag.
    static void forge(Association& association, Direction from, const SctpPacket& packet) {
        association = step(association, from, packet).next;
        if (packet.event == SctpEvent::Init) {
            association =
                step(association, opposite(from), with(SctpEvent::InitAck, packet.initiate_tag)).next;
        } else if (packet.event == SctpEvent::None) {
            association = step(association, opposite(from), reflecting(SctpEvent::Abort, packet.tag)).next;
        }
    }
    struct Own {
        Direction direction;
        SctpPacket packet;
    };
    // `first` has already opened the association.
    void nothing_is_lost(const char* name_of_script, const Association& first, const std::vector<Own>& script,
                         SctpState last) const {
        const std::vector<SctpPacket> forged = packets();
        for (size_t place = 0; place < script.size(); ++place) {
            for (size_t second_place = place; second_place < script.size(); ++second_place) {
                for (const SctpPacket& one : forged) {
                    for (const SctpPacket& other : forged) {
                        Association association = first;
                        bool shows_life = false;
                        for (size_t number = 0; number < script.size(); ++number) {
                            if (number == place) {
                                forge(association, name, one);
                            }
                            if (number == second_place) {
                                forge(association, name, other);
                            }
                            const SctpStep own =
                                step(association, script[number].direction, script[number].packet);
                            ASSERT_EQ(own.action, SctpAction::Pass)
                                << name_of_script << ", packet " << number << " behind event "
                                << int(one.event) << " in front of packet " << place << " and "
                                << int(other.event) << " in front of " << second_place;
                            association = own.next;
                            shows_life = number + 2 < script.size() ? false : shows_life || own.shows_life;
                        }
                        ASSERT_TRUE(is_open(association.state) || !is_open(last))
                            << name_of_script << ": " << to_string(association.state);
                        if (is_open(last)) {
                            ASSERT_TRUE(is_open(association.state) && !is_opening(association.state) &&
                                        shows_life)
                                << name_of_script << ": " << to_string(association.state) << " behind event "
                                << int(one.event) << " in front of packet " << place << " and "
                                << int(other.event) << " in front of " << second_place;
                        }
                    }
                }
            }
        }
    }
};

TEST_P(OneForger, EndsNothingAndPreventsNothing_SCTP002) {
    using enum SctpEvent;
    const Own data{F, with(None, kBackends)}, answer{R, with(None, kClients)};
    const std::vector<Own> opening{{R, with(InitAck, kClients)},
                                   {F, with(CookieEcho, kBackends)},
                                   {R, with(CookieAck, kClients)},
                                   data,
                                   answer};
    nothing_is_lost("opened", opened_by(kClients), opening, Established);
    const Association alive{Established, {kBackends, kClients}};
    nothing_is_lost("alive", alive, {data, answer, data, answer}, Established);
    nothing_is_lost("an answer comes twice", alive, {data, {R, with(CookieAck, kClients)}, data, answer},
                    Established);
    nothing_is_lost("closed", alive,
                    {data,
                     {F, with(SctpEvent::Shutdown, kBackends)},
                     {R, with(ShutdownAck, kClients)},
                     {F, with(ShutdownComplete, kBackends)}},
                    Closed);
    if (name == F) {
        const Association forged{CookieWait, {0, kForged}};
        nothing_is_lost("opened behind a forged INIT", forged,
                        {{F, init(kClients)},
                         {R, with(InitAck, kClients)},
                         {F, with(CookieEcho, kBackends)},
                         {R, with(CookieAck, kClients)},
                         data,
                         answer},
                        Established);
        nothing_is_lost("restarted", alive,
                        {{F, init(kNewClients)},
                         {R, with(InitAck, kNewClients)},
                         {F, with(CookieEcho, kNewBackends)},
                         {R, with(CookieAck, kNewClients)},
                         {F, with(None, kNewBackends)},
                         {R, with(None, kNewClients)}},
                        Established);
    }
}

INSTANTIATE_TEST_SUITE_P(All, OneForger, testing::Values(F, R));

// RFC 9260, 5.2.2 and 5.2.4: an INIT inside an association may come from a peer that has restarted, or be
// spoofed.
TEST(SctpState, ARestartTakesEffectWhenTheOtherSideAgrees_SCTP002) {
    using enum SctpEvent;
    follow(
        {"the client has restarted", opened({{F, init(kNewClients), Established},
                                             {R, with(InitAck, kNewClients), Established},
                                             {R, with(None, kClients), Established},
                                             {F, with(CookieEcho, kNewBackends), Restarting},
                                             {R, with(None, kClients), Restarting},
                                             {R, with(CookieAck, kNewClients), Established},
                                             {F, with(None, kNewBackends), Established},
                                             {F, with(None, kBackends), Established, SctpAction::WrongTag},
                                             {R, with(None, kClients), Established, SctpAction::WrongTag}})});
    follow({"the backend has restarted", opened({{R, init(kNewBackends), Established},
                                                 {F, with(InitAck, kNewBackends), Established},
                                                 {R, with(CookieEcho, kNewClients), BackendRestarting},
                                                 {F, with(CookieAck, kNewBackends), Established},
                                                 {R, with(None, kNewClients), Established},
                                                 {R, with(Abort, kNewClients), Closed}})});
    follow({"an INIT that was forged changes nothing",
            opened({{F, init(kForged), Established},
                    {R, with(InitAck, kForged), Established},
                    {F, with(None, kBackends), Established},
                    {R, with(Abort, kForged), Established, SctpAction::WrongTag},
                    {F, with(Abort, kBackends), Closed}})});
    follow({"a forged COOKIE ECHO is answered by nobody, and what was there goes on and ends",
            opened({{F, with(CookieEcho, kForged), Restarting},
                    {F, with(CookieAck, kForged), Restarting},
                    {F, with(Abort, kForged), Restarting},
                    {F, with(None, kBackends), Restarting},
                    {R, with(None, kClients), Restarting},
                    {R, with(CookieAck, kClients), Restarting},
                    {R, with(Abort, kClients), Closed},
                    {F, with(None, kBackends), Closed}})});
    follow({"the same of the backend", opened({{R, with(CookieEcho, kForged), BackendRestarting},
                                               {R, with(Abort, kForged), BackendRestarting},
                                               {R, with(None, kClients), BackendRestarting},
                                               {F, with(CookieAck, kBackends), BackendRestarting},
                                               {F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                                               {R, with(ShutdownAck, kClients), SctpState::Shutdown}})});
    follow({"a restart among forged cookies",
            opened({{F, with(CookieEcho, kForged), Restarting},
                    {F, with(CookieEcho, kNewBackends), Restarting},
                    {R, with(CookieAck, kNewClients), Established},
                    {F, with(None, kNewBackends), Established},
                    {R, with(None, kClients), Established, SctpAction::WrongTag}})});
    follow({"both have restarted", opened({{F, with(CookieEcho, kNewBackends), Restarting},
                                           {R, with(CookieEcho, kNewClients), Restarting},
                                           {R, with(CookieAck, kNewClients), Established},
                                           {F, with(CookieAck, kNewBackends), Established},
                                           {F, with(None, kNewBackends), Established},
                                           {R, with(None, kNewClients), Established}})});
    follow({"an end that waited for the last confirmation has died",
            opened({{F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                    {R, with(ShutdownAck, kClients), ShutdownAcked},
                    {F, init(kNewClients), ShutdownAcked},
                    {R, with(InitAck, kNewClients), ShutdownAcked},
                    {F, with(CookieEcho, kNewBackends), Restarting},
                    {R, with(CookieAck, kNewClients), Established},
                    {F, with(None, kNewBackends), Established}})});
}

TEST(SctpState, WhatAnOrderHasEndedIsAnswered_DRAIN004) {
    using enum SctpEvent;
    const Association aborting{SctpState::Aborting, {kBackends, kClients}};
    for (const Direction from : {F, R}) {
        for (const SctpEvent event : {None, InitAck, CookieEcho, CookieAck, Shutdown, ShutdownAck}) {
            EXPECT_EQ(step(aborting, from, with(event, kForged)), (SctpStep{aborting, SctpAction::Answer}));
        }
        for (const SctpEvent event : {Abort, ShutdownComplete}) {
            EXPECT_EQ(step(aborting, from, with(event, kForged)), (SctpStep{aborting, SctpAction::Pass}));
        }
    }
    EXPECT_EQ(step(aborting, F, init(kNewClients)).action, SctpAction::Reopen);
    EXPECT_EQ(step(aborting, R, init(kNewBackends)).action, SctpAction::Answer);
}

// Decrementing when an association stops being open, and at the removal of an open one, decrements exactly
// once.
TEST(SctpState, NothingOpensAgain_SCHED003) {
    for (uint8_t state = 0; state < kSctpStates; ++state) {
        for (uint8_t event = 0; event < packet::kSctpEvents; ++event) {
            for (const Direction from : {F, R}) {
                for (const uint32_t tag : {kClients, kBackends, kForged}) {
                    const Association before{static_cast<SctpState>(state), {kBackends, kClients}};
                    const SctpStep after =
                        step(before, from, {static_cast<SctpEvent>(event), false, tag, kNewClients});
                    EXPECT_TRUE(is_open(before.state) || !is_open(after.next.state))
                        << to_string(before.state) << " event " << int{event};
                }
            }
        }
    }
}

}  // namespace sctp_state_test
}  // namespace penstock::conn
