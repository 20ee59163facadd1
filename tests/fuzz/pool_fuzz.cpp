// SPDX-License-Identifier: Apache-2.0
// Any text as an AddressPool, in both notations. Decoding terminates, and a pool that is accepted satisfies
// what the allocator relies on: ranges of one family each, ascending and disjoint, and reservations inside
// them. A refused pool has a fault that names a field. If both notations accept the text under one name, they
// read the same pool.
#include <algorithm>
#include <string>
#include <string_view>

#include "control/kube/decode.hpp"
#include "control/kube/pool_values.hpp"
#include "control/manifest/decode.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::kube {
namespace {

// The order of ipam::Pool: IPv4 first.
bool is_before(const IpAddr& a, const IpAddr& b) {
    return a.family() == b.family() ? a < b : a.is_v4();
}

void check_pool(const ipam::Pool& pool) {
    PENSTOCK_CHECK(!pool.name.empty() && !pool.ranges.empty() && pool.ranges.size() <= kPoolAddressesMax);
    for (size_t i = 0; i < pool.ranges.size(); ++i) {
        const ipam::AddressRange& range = pool.ranges[i];
        PENSTOCK_CHECK(range.first.family() == range.last.family() && range.first <= range.last);
        PENSTOCK_CHECK(!range.first.is_unspecified() && !range.first.is_loopback() &&
                       !range.first.is_multicast() && !range.last.is_multicast());
        PENSTOCK_CHECK(i == 0 || is_before(pool.ranges[i - 1].last, range.first));
    }
    PENSTOCK_CHECK(pool.priority >= 0 && pool.namespaces.size() <= kPoolNamespacesMax);
    PENSTOCK_CHECK(std::ranges::is_sorted(pool.namespaces));
    PENSTOCK_CHECK(!pool.enforce || !pool.namespaces.empty() || pool.namespace_selector);
    PENSTOCK_CHECK(pool.reservations.size() <= kPoolReservationsMax);
    for (const ipam::Reservation& reservation : pool.reservations) {
        PENSTOCK_CHECK(!reservation.service.namespace_name.empty() && !reservation.service.name.empty());
        PENSTOCK_CHECK(std::ranges::any_of(pool.ranges, [&](const ipam::AddressRange& range) {
            return range.first.family() == reservation.address.family() &&
                   range.first <= reservation.address && reservation.address <= range.last;
        }));
    }
}

void check_range(std::string_view text) {
    if (const auto range = parse_address_range(text)) {
        PENSTOCK_CHECK(range->first.family() == range->last.family() && range->first <= range->last);
        // The range written with both ends is the same range.
        const auto again = parse_address_range(range->first.to_string() + "-" + range->last.to_string());
        PENSTOCK_CHECK(again && *again == *range);
    } else {
        PENSTOCK_CHECK(range.error().what.starts_with("(\""));
    }
}

}  // namespace
}  // namespace penstock::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    kube::check_range(text);

    const manifest::DecodedFile file = manifest::decode(text, "f", {.file_bytes_max = 65'536, .tree = {}});
    for (const manifest::DecodedObject& found : file.objects) {
        const auto* pool = found.object ? std::get_if<kube::AddressPool>(&*found.object) : nullptr;
        if (pool != nullptr) {
            kube::check_pool(pool->pool);
        }
    }
    static kube::Decoder decoder;
    const auto decoded = kube::decode_object(decoder, kube::ObjectKind::AddressPool, text);
    if (!decoded) {
        return 0;
    }
    PENSTOCK_CHECK(decoded->object.has_value() == decoded->faults.empty());
    if (!decoded->object) {
        return 0;
    }
    const kube::AddressPool& pool = *std::get<kube::AddressPoolPtr>(*decoded->object);
    kube::check_pool(pool.pool);
    if (file.objects.size() == 1 && file.objects[0].object && file.objects[0].id == decoded->id) {
        PENSTOCK_CHECK(std::get<kube::AddressPool>(*file.objects[0].object) == pool);
    }
    return 0;
}
