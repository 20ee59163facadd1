#include "dataplane/conn/sctp_state.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::conn {
namespace {

using packet::SctpEvent;
using SctpState::Closed, SctpState::CookieEchoed, SctpState::CookieWait, SctpState::Established, SctpState::Restarting,
    SctpState::ShutdownAcked;
constexpr Direction F = Direction::Forward, R = Direction::Reverse;
constexpr uint32_t kClients = 0xc11e'0001;  // the tag that the client has chosen, so that of packets to it
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

// Begins behind the client's INIT.
void follow(const Conversation& conversation) {
    Association association = opened_by(kClients);
    size_t number = 0;
    for (const Seen& seen : conversation.packets) {
        const SctpStep step = conn::step(association, seen.direction, seen.packet);
        EXPECT_EQ(step.next.state, seen.after) << conversation.name << ", packet " << number << ": " << to_string(step.next.state);
        EXPECT_EQ(step.action, seen.action) << conversation.name << ", packet " << number;
        if (step.action != SctpAction::Pass) {
            EXPECT_EQ(step.next, association) << conversation.name << ", packet " << number << ": what does not pass moves nothing";
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
        {"SHUTDOWN COMPLETE of a client that has forgotten it", opened({{F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                                                                        {R, with(ShutdownAck, kClients), ShutdownAcked},
                                                                        {F, reflecting(ShutdownComplete, kClients), Closed}})},
        {"the client aborts", opened({{F, with(Abort, kBackends), Closed}, {R, with(None, kClients), Closed}})},
        {"the backend aborts", opened({{R, with(Abort, kClients), Closed}})},
        {"the backend has forgotten it", opened({{F, with(None, kBackends), Established}, {R, reflecting(Abort, kBackends), Closed}})},
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
          {R, with(InitAck, kClients), CookieWait, SctpAction::WrongTag},
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
        {"a tuple used again", opened({{F, with(Abort, kBackends), Closed}, {F, init(kNewClients), Closed, SctpAction::Reopen}})},
        {"an INIT of the backend reopens nothing", opened({{F, with(Abort, kBackends), Closed}, {R, init(kNewBackends), Closed}})},
    };
    for (const Conversation& conversation : conversations) {
        follow(conversation);
    }
}

TEST(SctpState, NobodyMovesWhatHeCannotSee_SCTP002) {
    using enum SctpEvent;
    for (const Direction from : {F, R}) {
        const uint32_t right = from == F ? kBackends : kClients;
        for (const SctpEvent event : {None, CookieAck, SctpEvent::Shutdown, ShutdownAck, ShutdownComplete, Abort}) {
            follow({"a forged tag",
                    opened({{from, with(event, kForged), Established, SctpAction::WrongTag}, {from, with(None, right), Established}})});
        }
        for (const SctpEvent event : {ShutdownComplete, Abort}) {
            follow({"a tag that is not reflected but said to be",
                    opened({{from, reflecting(event, right), Established, SctpAction::WrongTag}})});
        }
    }
    follow({"before the handshake is through",
            {{F, with(None, kForged), CookieWait, SctpAction::WrongTag},
             {F, with(Abort, kForged), CookieWait, SctpAction::WrongTag},
             {R, with(Abort, kForged), CookieWait, SctpAction::WrongTag},
             {R, with(CookieAck, kForged), CookieWait, SctpAction::WrongTag},
             {R, with(InitAck, kClients), CookieWait},
             {F, with(CookieEcho, kBackends), CookieEchoed},
             {F, with(Abort, kForged), CookieEchoed, SctpAction::WrongTag},
             {R, with(CookieAck, kClients), Established}}});
}

// RFC 9260, 5.2.2 and 5.2.4: an INIT inside an association may be a peer that has started again, or anybody.
TEST(SctpState, ARestartTakesEffectWhenTheOtherSideAgrees_SCTP002) {
    using enum SctpEvent;
    follow({"the client has restarted", opened({{F, init(kNewClients), Established},
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
                                                 {R, with(CookieEcho, kNewClients), Restarting},
                                                 {F, with(CookieAck, kNewBackends), Established},
                                                 {R, with(None, kNewClients), Established},
                                                 {R, with(Abort, kNewClients), Closed}})});
    follow({"an INIT that was forged changes nothing", opened({{F, init(kForged), Established},
                                                               {R, with(InitAck, kForged), Established},
                                                               {F, with(None, kBackends), Established},
                                                               {R, with(Abort, kForged), Established, SctpAction::WrongTag},
                                                               {F, with(Abort, kBackends), Closed}})});
    follow({"a forged COOKIE ECHO is answered by nobody, and what was there goes on", opened({{F, with(CookieEcho, kForged), Restarting},
                                                                                              {F, with(CookieAck, kForged), Restarting},
                                                                                              {F, with(Abort, kForged), Restarting},
                                                                                              {F, with(None, kBackends), Restarting},
                                                                                              {R, with(None, kClients), Restarting}})});
    follow({"no restart while the other side is waiting for the end (RFC 9260, 9.2)",
            opened({{F, with(SctpEvent::Shutdown, kBackends), SctpState::Shutdown},
                    {R, with(ShutdownAck, kClients), ShutdownAcked},
                    {F, init(kNewClients), ShutdownAcked},
                    {F, with(CookieEcho, kNewBackends), ShutdownAcked, SctpAction::WrongTag}})});
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

// Whoever subtracts where an association stops being open, and at the removal of what is still open, subtracts once.
TEST(SctpState, NothingOpensAgain_SCHED003) {
    for (uint8_t state = 0; state < kSctpStates; ++state) {
        for (uint8_t event = 0; event < packet::kSctpEvents; ++event) {
            for (const Direction from : {F, R}) {
                for (const uint32_t tag : {kClients, kBackends, kForged}) {
                    const Association before{static_cast<SctpState>(state), {kBackends, kClients}};
                    const SctpStep after = step(before, from, {static_cast<SctpEvent>(event), false, tag, kNewClients});
                    EXPECT_TRUE(is_open(before.state) || !is_open(after.next.state)) << to_string(before.state) << " event " << int{event};
                }
            }
        }
    }
}

}  // namespace
}  // namespace penstock::conn
