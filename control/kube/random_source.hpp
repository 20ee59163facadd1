// SPDX-License-Identifier: Apache-2.0
// Source of random numbers in [0, 1), passed to the code that needs them. Tests pass a fixed one.
#pragma once

#include <functional>
#include <memory>
#include <random>

namespace penstock::kube {

using RandomSource = std::function<double()>;

// Differs in each process, so that a hundred gateways that restart together do not send their requests
// together (APISYNC-012). Copies share one sequence.
[[nodiscard]] inline RandomSource system_random() {
    return [engine = std::make_shared<std::mt19937_64>(std::random_device{}())] {
        return std::uniform_real_distribution<double>(0.0, 1.0)(*engine);
    };
}

}  // namespace penstock::kube
