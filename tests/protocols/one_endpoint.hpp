// SPDX-License-Identifier: Apache-2.0
// A fixture of packet tests: a virtual gateway and the two ends of a flow through it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>

#include "tests/protocols/ends.hpp"

namespace penstock::test {

// For tests with this number of workers, over one family, with the source translated or kept.
class ThroughOneEndpoint : public testing::TestWithParam<std::tuple<uint32_t, IpFamily, lb::SourceMode>> {
 protected:
    static constexpr uint8_t kEndpointHost = 11;  // service_on_both()'s endpoint

    [[nodiscard]] PacketBuilder from_endpoint() const {
        return translated ? ends.from_backend(kEndpointHost) : ends.from_backend_to_client(kEndpointHost);
    }
    [[nodiscard]] PacketBuilder to_endpoint() const {
        return translated ? ends.to_backend(kEndpointHost) : ends.to_backend_from_client(kEndpointHost);
    }

    const uint32_t workers = std::get<0>(GetParam());
    const IpFamily family = std::get<1>(GetParam());
    const Ends ends = family == IpFamily::V4 ? ends4() : ends6();
    const lb::SourceMode source = std::get<2>(GetParam());
    const bool translated = source == lb::SourceMode::Translate;
    VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};
};

}  // namespace penstock::test
