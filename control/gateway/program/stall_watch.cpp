// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/stall_watch.hpp"

#include "dataplane/base/check.hpp"

namespace penstock::gateway {

std::vector<StallWatch::Change> StallWatch::look(Time now, std::span<const LoopReading> readings) {
    PENSTOCK_CHECK(readings.size() == loops_.size());
    std::vector<Change> changes;
    const auto silence_of = [now](const State& state) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(now - state.progress_at);
    };
    for (size_t i = 0; i < loops_.size(); ++i) {
        State& state = states_[i];
        const LoopReading& reading = readings[i];
        if (reading.is_resting || state.rounds != reading.rounds) {
            if (state.is_stalled) {
                changes.push_back({i, false, state.stage, silence_of(state)});
            }
            state = {
                .rounds = reading.rounds, .progress_at = now, .looks = 0, .is_stalled = false, .stage = {}};
            continue;
        }
        ++state.looks;
        if (!state.is_stalled && state.looks >= kLooks && now - state.progress_at >= loops_[i].limit) {
            state.is_stalled = true;
            state.stage = reading.stage;
            changes.push_back({i, true, state.stage, silence_of(state)});
        }
    }
    return changes;
}

std::vector<StallWatch::Stall> StallWatch::stalled() const {
    std::vector<Stall> out;
    for (size_t i = 0; i < states_.size(); ++i) {
        if (states_[i].is_stalled) {
            out.push_back({i, states_[i].stage, states_[i].progress_at});
        }
    }
    return out;
}

}  // namespace penstock::gateway
