// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/order.hpp"

#include <cmath>

namespace penstock::perf {
namespace {

constexpr double kTheta = 0.99;
// The multiplier spreads ranks over the numbers. It is prime and larger than any n here. Without it
// neighbours in the table would be hot together.
constexpr uint64_t kSpread = 4'294'967'291;

}  // namespace

std::string_view to_string(OrderKind kind) noexcept {
    switch (kind) {
        case OrderKind::Uniform:
            return "uniform";
        case OrderKind::Zipf:
            return "zipf";
        case OrderKind::Sequential:
            return "sequential";
    }
    return "?";
}

Order::Order(OrderKind kind, uint32_t n, uint64_t seed) : kind_(kind), n_(n), prng_(seed) {
    if (kind == OrderKind::Zipf) {
        for (uint32_t i = 1; i <= n; ++i) {
            zeta_ += 1.0 / std::pow(i, kTheta);
        }
        alpha_ = 1.0 / (1.0 - kTheta);
        const double zeta_two = 1.0 + std::pow(0.5, kTheta);
        eta_ = (1.0 - std::pow(2.0 / n, 1.0 - kTheta)) / (1.0 - zeta_two / zeta_);
    }
}

uint32_t Order::zipf() noexcept {
    const double u = prng_.unit();
    const double scaled = u * zeta_;
    uint32_t rank = 0;
    if (scaled >= 1.0) {
        rank = scaled < 1.0 + std::pow(0.5, kTheta)
                   ? 1
                   : static_cast<uint32_t>(n_ * std::pow(eta_ * u - eta_ + 1.0, alpha_));
    }
    return static_cast<uint32_t>(rank * kSpread % n_);
}

uint32_t Order::next() noexcept {
    switch (kind_) {
        case OrderKind::Uniform:
            return prng_.below(n_);
        case OrderKind::Zipf:
            return zipf();
        case OrderKind::Sequential:
            position_ = position_ + 1 < n_ ? position_ + 1 : 0;
            return position_;
    }
    return 0;
}

}  // namespace penstock::perf
