// SPDX-License-Identifier: Apache-2.0
#include "control/process/signals.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/unit/process/in_child.hpp"

namespace penstock::process {
namespace signals_test {

using test::exit_code_of;

TEST(Signals, EverySignalThatWouldEndTheProcess_IsReceivedInstead) {
    EXPECT_EQ(
        exit_code_of([] {
            auto signals = Signals::block();
            using Meaning = Signal::Meaning;
            const std::pair<int, Meaning> rows[] = {
                {SIGTERM, Meaning::Stop},      {SIGINT, Meaning::Stop},       {SIGHUP, Meaning::Reload},
                {SIGUSR1, Meaning::Unknown},   {SIGUSR2, Meaning::Unknown},   {SIGALRM, Meaning::Unknown},
                {SIGVTALRM, Meaning::Unknown}, {SIGPROF, Meaning::Unknown},   {SIGIO, Meaning::Unknown},
                {SIGPWR, Meaning::Unknown},    {SIGSTKFLT, Meaning::Unknown}, {SIGXCPU, Meaning::Unknown},
                {SIGXFSZ, Meaning::Unknown},   {SIGRTMIN, Meaning::Unknown},  {SIGRTMAX, Meaning::Unknown},
            };
            for (const auto& [number, meaning] : rows) {
                ::kill(::getpid(), number);
                const Signal signal = signals->take();
                if (signal.number != number || signal.meaning != meaning) {
                    return number;
                }
            }
            ::kill(::getpid(), SIGPIPE);
            return signals->take().number;
        }),
        0);
}

TEST(Signals, AnIgnoredHangup_IsReceivedAllTheSame) {
    EXPECT_EQ(exit_code_of([] {
                  std::signal(SIGHUP, SIG_IGN);  // as set by nohup
                  auto signals = Signals::block();
                  ::kill(::getpid(), SIGHUP);
                  return signals->take().meaning == Signal::Meaning::Reload ? 0 : 1;
              }),
              0);
}

TEST(Signals, HaveNamesForTheLog) {
    EXPECT_EQ(Signal{SIGHUP}.name(), "SIGHUP");
    EXPECT_EQ(Signal{SIGRTMIN + 3}.name(), "SIGRTMIN+3");
}

}  // namespace signals_test
}  // namespace penstock::process
