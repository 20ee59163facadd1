// SPDX-License-Identifier: Apache-2.0
// A narrow --snat-ports that leaves a worker without ports is reported.
#include "control/gateway/options/snat_shares.hpp"

#include <gtest/gtest.h>

#include "tests/support/reply_hashes.hpp"

namespace penstock::gateway {
namespace snat_shares_test {

constexpr nat::PortRange kEphemeral{32768, 60999};

TEST(SnatShares, EveryWorkerHasABlockOfTheDefaultRange_NAT002) {
    for (const unsigned workers : {1U, 2U, 3U, 64U}) {
        const auto remark = check_snat_shares({1024, 65535}, kEphemeral, workers);
        ASSERT_TRUE(remark) << workers << ": " << remark.error().what;
        EXPECT_EQ(*remark, "") << workers;
    }
}

TEST(SnatShares, AWorkerWithoutAPortIsRefusedByName_NAT002) {
    const struct {
        nat::PortRange ports;
        unsigned workers;
        const char* refusal;  // null: sufficient
    } rows[] = {
        {{20000, 20000}, 1, nullptr},
        {{20032, 20159}, 2, nullptr},  // two whole blocks
        {{20095, 20096}, 2, nullptr},  // the last port of one and the first of the next
        {{20032, 20095},
         2,
         "--snat-ports: 20032-20095 leaves worker 0 without a port"},  // block 313 is worker 1's
        {{20096, 20159}, 2, "leaves worker 1 without a port"},
        {{20032, 20159}, 3, "workers take ports in blocks of 64, so 3 workers need 192 consecutive ports"},
        {{1024, 1024 + 64 * 64 - 1}, 64, nullptr},
        {{1024, 1024 + 63 * 64 - 1}, 64, "leaves worker 15 without a port"},  // blocks 16 to 78 of 64 workers
        {{65535, 65535}, 2, "leaves worker 0 without a port"},
    };
    for (const auto& row : rows) {
        const auto checked = check_snat_shares(row.ports, kEphemeral, row.workers);
        const std::string shown = std::to_string(row.ports.first) + "-" + std::to_string(row.ports.last);
        EXPECT_EQ(checked.has_value(), row.refusal == nullptr) << shown;
        if (!checked && row.refusal != nullptr) {
            EXPECT_EQ(checked.error().code, Errc::InvalidArgument);
            EXPECT_NE(checked.error().what.find(row.refusal), std::string::npos) << checked.error().what;
        }
    }
}

TEST(SnatShares, AShareThatTheHostTakesIsSaid_NAT002) {
    const auto inside = check_snat_shares({40000, 50000}, kEphemeral, 1);
    ASSERT_TRUE(inside);
    EXPECT_NE(inside->find("leaves worker 0 without a port on addresses that the host uses too, because "
                           "Linux uses 32768-60999"),
              std::string::npos)
        << *inside;
    // Block 511 (32704-32767) is worker 1's. Worker 0 has only ports in the host's range.
    const auto half = check_snat_shares({32704, 40000}, kEphemeral, 2);
    ASSERT_TRUE(half);
    EXPECT_NE(half->find("worker 0"), std::string::npos) << *half;
    EXPECT_EQ(check_snat_shares({32640, 40000}, kEphemeral, 2).value(), "");
}

// Ports scattered by a hash: a wide range has ports for every worker towards every endpoint. A narrow range
// may not.
TEST(SnatShares, AHashMayLeaveAWorkerWithoutAPortOfANarrowRange_NAT002) {
    const auto remark = [](nat::PortRange ports, unsigned workers) {
        return remark_on_hashed_shares(test::hash_in_turn(128, workers), {1}, ports, workers);
    };
    for (const unsigned workers : {2U, 3U, 64U}) {
        EXPECT_EQ(remark({1024, 65535}, workers), "") << workers;
    }
    EXPECT_NE(remark({20000, 20002}, 4).find("--snat-ports: 20000-20002 leaves worker "), std::string::npos);
    EXPECT_NE(
        remark({20000, 20000}, 2)
            .find("without a port towards some endpoints over IPv4, because RSS of port 1 delivers no reply"),
        std::string::npos);
    nat::ReplyHash only_v6 = test::hash_in_turn(128, 2);
    only_v6.tcp4 = only_v6.udp4 = false;
    EXPECT_NE(remark_on_hashed_shares(only_v6, {0}, {20000, 20000}, 2).find("over IPv6"), std::string::npos);
}

// A range with enough ports for all workers has one port of the heir's part.
TEST(SnatShares, AHashMayLeaveAnHeirWithoutAPort_NAT002) {
    const auto remark = [](nat::PortRange ports, unsigned workers, nat::PortPart part) {
        return remark_on_hashed_shares(test::hash_in_turn(128, workers), {1}, ports, workers, part);
    };
    EXPECT_EQ(remark({20000, 20063}, 2, nat::PortPart::All), "");
    const std::string as_heir = remark({20000, 20014}, 2, nat::PortPart::Heir);
    EXPECT_NE(as_heir.find("leaves worker "), std::string::npos) << as_heir;
    EXPECT_NE(as_heir.find("; as the heir of a share it uses every eighth port; new flows"),
              std::string::npos)
        << as_heir;
    for (const unsigned workers : {2U, 3U, 16U}) {
        EXPECT_EQ(remark({1024, 65535}, workers, nat::PortPart::Heir), "") << workers;
    }
}

TEST(SnatShares, ANarrowRangeMayLeaveAnHeirWithoutAPort_NAT002) {
    EXPECT_EQ(remark_on_heirs_ports({1024, 65535}, 64), "");
    EXPECT_EQ(remark_on_heirs_ports({20007, 20007}, 1), "");
    EXPECT_EQ(
        remark_on_heirs_ports({20000, 20006}, 1),
        "--snat-ports: 20000-20006 leaves worker 0 without a port as the heir of a share, because heirs use "
        "every eighth port; new flows that need such a port are dropped");
    EXPECT_NE(remark_on_heirs_ports({20095, 20100}, 2).find("leaves worker "), std::string::npos);
}

}  // namespace snat_shares_test
}  // namespace penstock::gateway
