// SPDX-License-Identifier: Apache-2.0
// Notices about an object, collected while it is evaluated. The result is sorted, unique and bounded: equal
// objects give equal notices (GEN-006), and the notices of a Service with 100,000 invalid endpoints still fit
// a message.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "control/model/desired.hpp"

namespace penstock::semantics {

// Notice reasons, each with the rule that requires it. Events, logs and tests use these constants.
namespace reason {
inline constexpr std::string_view kInvalidPort = "InvalidPort";                  // SVC-010, SVC-011, EP-009
inline constexpr std::string_view kUnsupportedProtocol = "UnsupportedProtocol";  // SVC-012
inline constexpr std::string_view kFrontendConflict = "FrontendConflict";        // SVC-018
inline constexpr std::string_view kInvalidEndpointAddress = "InvalidEndpointAddress";  // EP-005, EP-006
inline constexpr std::string_view kUnsupportedAddressType = "UnsupportedAddressType";  // EP-008
inline constexpr std::string_view kInvalidExternalIp = "InvalidExternalIP";            // XIP-004
inline constexpr std::string_view kFamilyMismatch = "FamilyMismatch";                  // XIP-005
inline constexpr std::string_view kExternalIpNotAllowed = "ExternalIPNotAllowed";      // XIP-006
inline constexpr std::string_view kInvalidLoadBalancerIp = "InvalidLoadBalancerIP";    // LB-005
inline constexpr std::string_view kLoadBalancerPortsError = "LoadBalancerPortsError";  // LB-006, LB-017
inline constexpr std::string_view kNodePortRequired = "NodePortRequired";              // LB-016
inline constexpr std::string_view kInvalidSourceRange = "InvalidSourceRange";          // SRC-002
inline constexpr std::string_view kSourceRangesIgnored = "SourceRangesIgnored";        // SRC-004
inline constexpr std::string_view kInvalidAnnotation = "InvalidAnnotation";            // ANN-G3
inline constexpr std::string_view kUnsupportedAnnotation = "UnsupportedAnnotation";    // ANN-G4
inline constexpr std::string_view kUnknownAnnotation = "UnknownAnnotation";            // ANN-G5
inline constexpr std::string_view kUnknownValue = "UnknownValue";  // GEN-002: an unknown enum value
inline constexpr std::string_view kNotServed =
    "NotServed";  // SVC-002, SVC-003: requests frontends, gets none
inline constexpr std::string_view kInvalidPodCidr = "InvalidPodCIDR";  // XIP-006, when a Node is read
// NODEPORT-002, when a Node is read.
inline constexpr std::string_view kInvalidNodeAddress = "InvalidNodeAddress";
inline constexpr std::string_view kInvalidTopologyKeys = "InvalidTopologyKeys";        // TOPO-005
inline constexpr std::string_view kTopologyKeysIgnored = "TopologyKeysIgnored";        // TOPO-007
inline constexpr std::string_view kInvalidAffinityTimeout = "InvalidAffinityTimeout";  // AFF-003
inline constexpr std::string_view kSourceIpNotPreserved = "SourceIPNotPreserved";      // ETP-004, ANN-32
inline constexpr std::string_view kEndpointsTruncated = "EndpointsTruncated";          // EP-015
inline constexpr std::string_view kNodeNotFound = "NodeNotFound";  // NODEPORT-002, if the Node does not exist
}  // namespace reason

// Notices of one reason that are kept in full. The rest are counted in one last notice. The limit leaves room
// for a Service whose sixteen externalIPs (GEN-009) are all refused.
inline constexpr size_t kNoticesPerReason = 32;

class Notices {
 public:
    // `reason` is one of the constants above. Text from objects in `message` must have passed through
    // printable().
    void warn(std::string_view reason, std::string message) {
        add(model::Notice::Level::Warning, reason, std::move(message));
    }
    void mention(std::string_view reason, std::string message) {
        add(model::Notice::Level::Normal, reason, std::move(message));
    }

    // Adds all notices to `other`.
    void append_to(Notices& other) const;

    [[nodiscard]] std::vector<model::Notice> sorted() const;

 private:
    struct OfOneReason {
        std::vector<model::Notice> kept;
        size_t more = 0;
    };
    void add(model::Notice::Level level, std::string_view reason, std::string message);

    std::map<std::string_view, OfOneReason> by_reason_;
};

}  // namespace penstock::semantics
