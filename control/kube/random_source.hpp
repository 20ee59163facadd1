// Where chance comes from, handed to whoever needs it: numbers from 0 up to, not including, 1. A test hands over one that it chose.
#pragma once

#include <functional>
#include <memory>
#include <random>

namespace penstock::kube {

using RandomSource = std::function<double()>;

// Differs in each process: a hundred gateways that restart together shall not ask together (APISYNC-012). Copies share one sequence.
[[nodiscard]] inline RandomSource system_random() {
    return [engine = std::make_shared<std::mt19937_64>(std::random_device{}())] {
        return std::uniform_real_distribution<double>(0.0, 1.0)(*engine);
    };
}

}  // namespace penstock::kube
