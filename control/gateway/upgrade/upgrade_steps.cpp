// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/upgrade_steps.hpp"

namespace penstock::gateway {

void UpgradeSteps::go_to(Step step, std::optional<Clock::time_point> deadline) {
    step_ = step;
    deadline_ = deadline;
}

UpgradeSteps::Result UpgradeSteps::take(Event event, Clock::time_point now) {
    switch (event) {
        case Event::Requested:
            if (step_ != Step::Idle) {
                return {{}, "the upgrade is refused: another upgrade is under way", true};
            }
            is_prepared_ = is_launched_ = false;
            go_to(Step::Preparing, now + kPrepareMax);
            return {{Order::StartSuccessor}, "upgrade: the successor starts", false};
        case Event::Prepared:
            is_prepared_ = true;
            if (step_ == Step::Preparing) {
                go_to(Step::HandingOver, now + kHandOverMax);
                return {{Order::SendHandOver}, "upgrade: the successor is prepared", false};
            }
            if (step_ == Step::TakingOver) {  // the former process had ended before
                deadline_ = now + kTakeOverMax;
            }
            return {};
        case Event::HandedOver:
            if (step_ == Step::HandingOver) {
                go_to(Step::TakingOver, now + kTakeOverMax);
                return {{Order::SendTakeOver}, "", false};
            }
            if (step_ == Step::Restoring) {
                go_to(Step::Idle);
                return {{Order::StartFormerBinary}, "", false};
            }
            return {};
        case Event::Progress:
        case Event::Launched:
            if (!deadline_) {  // it is killed already
                return {};
            }
            if (step_ == Step::Preparing || (step_ == Step::TakingOver && !is_prepared_)) {
                deadline_ = now + kPrepareMax;
            } else if (step_ == Step::TakingOver && !is_launched_) {
                is_launched_ = event == Event::Launched;
                deadline_ = now + (is_launched_ ? kServeMax : kTakeOverMax);
            }
            return {};
        case Event::Forwards:
            if (step_ == Step::TakingOver) {
                go_to(Step::Idle);
                return {{Order::SuccessorIsCurrent}, "upgrade: the successor forwards", false};
            }
            return {};
        case Event::FormerEnded:
            return former_ended(now);
        case Event::SuccessorEnded:
            return successor_ended();
    }
    return {};
}

UpgradeSteps::Result UpgradeSteps::former_ended(Clock::time_point now) {
    switch (step_) {
        case Step::Idle:
            return {{Order::End}, "", false};
        case Step::Preparing:
            go_to(Step::TakingOver, deadline_);
            return {{Order::SendTakeOver},
                    "upgrade: the former process has ended by itself; the successor takes over when it is "
                    "prepared",
                    true};
        case Step::HandingOver:
            go_to(Step::TakingOver, now + kTakeOverMax);
            return {{Order::SendTakeOver}, "", false};
        case Step::Restoring:
            go_to(Step::Idle);
            return {{Order::StartFormerBinary}, "", false};
        case Step::TakingOver:
            return {};  // it has handed over before
    }
    return {};
}

UpgradeSteps::Result UpgradeSteps::successor_ended() {
    const std::string why = "upgrade failed: the successor has ended, its log has the reason; ";
    switch (step_) {
        case Step::Preparing:
            go_to(Step::Idle);
            return {{}, why + "the former process continues", true};
        case Step::HandingOver:
            go_to(Step::Restoring, deadline_);  // the former process cannot be stopped from stopping
            return {{}, why + "the former binary starts again when its process has stopped", true};
        case Step::TakingOver:
            go_to(Step::Idle);
            return {{Order::StartFormerBinary}, why + "the former binary starts again", true};
        case Step::Idle:
        case Step::Restoring:
            return {};
    }
    return {};
}

UpgradeSteps::Result UpgradeSteps::take_time(Clock::time_point now) {
    if (!deadline_ || now < *deadline_) {
        return {};
    }
    deadline_.reset();  // the end of the killed process is the next event
    switch (step_) {
        case Step::Preparing:
            return {{Order::KillSuccessor}, "upgrade: the successor was not prepared in time", true};
        case Step::HandingOver:
        case Step::Restoring:
            return {{Order::KillFormer}, "upgrade: the former process did not hand over in time", true};
        case Step::TakingOver:
            return {{Order::KillSuccessor},
                    is_launched_ ? "upgrade: the successor did not serve its API in time"
                                 : "upgrade: the successor did not forward in time",
                    true};
        case Step::Idle:
            return {};
    }
    return {};
}

}  // namespace penstock::gateway
