// SPDX-License-Identifier: Apache-2.0
// Any text as the report of a gateway, which every process with the right to patch the Lease can write:
// accepted text is reproduced by writing it.
#include <string_view>

#include "control/sync/addresses/gateway_report.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    using namespace penstock::sync;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto parsed = parse_report(text);
    if (!parsed) {
        PENSTOCK_CHECK(parsed.error().what.starts_with("report of a gateway: "));
        return 0;
    }
    // A service that is listed twice is written once, so the text is never longer.
    const auto written = report_text(*parsed);
    PENSTOCK_CHECK(written);
    const auto again = parse_report(*written);
    PENSTOCK_CHECK(again && *again == *parsed);
    PENSTOCK_CHECK(report_key(parsed->gateway).size() <= kReportPrefix.size() + 63);
    return 0;
}
