// SPDX-License-Identifier: Apache-2.0
// CPUs of workers and of the other threads.
#include "control/host/core_plan.hpp"

#include <gtest/gtest.h>

namespace penstock::host {
namespace core_plan_test {

TEST(CorePlan, WorkersTakeTheCpusAfterTheMainCore) {
    const auto plan = plan_cores({.workers = 2}, {0, 1, 2, 3});
    ASSERT_TRUE(plan);
    EXPECT_EQ(*plan, (CorePlan{0, {1, 2}, ""}));
    EXPECT_EQ(plan_cores({.workers = 1, .main_core = 2}, {0, 1, 2})->worker_cpus, std::vector<unsigned>{0});
}

TEST(CorePlan, SharingIsPossibleButSaid) {
    const auto wrapped = plan_cores({.workers = 3}, {0, 1});
    EXPECT_EQ(wrapped->worker_cpus, (std::vector<unsigned>{1, 0, 1}));
    EXPECT_NE(wrapped->remark.find("share a CPU"), std::string::npos);
    const auto told = plan_cores({.worker_cores = {1, 1}}, {0, 1});
    EXPECT_EQ(told->worker_cpus, (std::vector<unsigned>{1, 1}));
    EXPECT_NE(told->remark.find("share a CPU"), std::string::npos);
    EXPECT_NE(plan_cores({}, {5})->remark.find("CPU 5, where the control threads run"), std::string::npos);
}

TEST(CorePlan, WhatCannotBeIsRefusedByName) {
    EXPECT_NE(plan_cores({.main_core = 7}, {0, 1}).error().what.find("--main-core: CPU 7"),
              std::string::npos);
    EXPECT_NE(plan_cores({.worker_cores = {1, 4}}, {0, 1}).error().what.find("--worker-cores: CPU 4"),
              std::string::npos);
    EXPECT_NE(plan_cores({.workers = 3, .worker_cores = {1}}, {0, 1}).error().what.find("contradicts"),
              std::string::npos);
    EXPECT_FALSE(plan_cores({}, {}));
}

}  // namespace core_plan_test
}  // namespace penstock::host
