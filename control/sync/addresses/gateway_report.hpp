// SPDX-License-Identifier: Apache-2.0
// What one penstock-sync reports about one of its gateways to the others: one line of text, kept as an
// annotation of a Lease.
//
//   1 edge-2 48213 17 default/web shop/cart
//   |   |      |    |  '- Services with an address that the gateway does not serve
//   |   |      |    '---- a number that changes with each write: the process lives
//   |   |      '--------- the report covers Services up to this resourceVersion
//   |   '---------------- the gateway
//   '-------------------- version of this format
//
// Nearly all gateways serve nearly all Services, so the exceptions are few: the report of 10,000 Services has
// 30 bytes. A Service that changed after that version is not covered: its state is that of an earlier report.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "control/kube/object_id.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// Longest report. All annotations of an object have room for 256 KiB.
inline constexpr size_t kGatewayReportBytesMax = 16 << 10;

struct GatewayReport {
    std::string gateway;
    uint64_t seen = 0;
    uint64_t beat = 0;
    std::set<kube::ObjectName> not_served;
    bool operator==(const GatewayReport&) const = default;

    // nullopt: a Service of this version is not covered.
    [[nodiscard]] std::optional<bool> serves(const kube::ObjectName& service, uint64_t version) const {
        return version > seen ? std::nullopt : std::optional(!not_served.contains(service));
    }
};

// nullopt: longer than kGatewayReportBytesMax.
[[nodiscard]] std::optional<std::string> report_text(const GatewayReport& report);
// Error: Corrupt, which names the rule.
[[nodiscard]] Result<GatewayReport> parse_report(std::string_view text);

// Key of the annotation: "gateway.penstock.io/edge-2". Names that a key has no room for are replaced by their
// beginning and a hash.
inline constexpr std::string_view kReportPrefix = "gateway.penstock.io/";
[[nodiscard]] std::string report_key(std::string_view gateway);

// resourceVersion as a number; nullopt: the server uses other versions, and nothing can be reported.
[[nodiscard]] std::optional<uint64_t> version_number(std::string_view resource_version);

}  // namespace penstock::sync
