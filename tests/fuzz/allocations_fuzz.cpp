// SPDX-License-Identifier: Apache-2.0
// Any text as an allocation file: accepted text is reproduced by writing it, an error names a line.
#include <string_view>

#include "control/sync/addresses/allocation_file.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    using namespace penstock::sync;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto parsed = parse_allocations(text);
    if (!parsed) {
        PENSTOCK_CHECK(parsed.error().what.starts_with("line "));
        return 0;
    }
    const auto again = parse_allocations(allocations_text(*parsed));
    PENSTOCK_CHECK(again && *again == *parsed);
    return 0;
}
