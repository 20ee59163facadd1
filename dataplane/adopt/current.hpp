// SPDX-License-Identifier: Apache-2.0
// The Services of a snapshot, arranged for the questions of an adoption: whose frontend is this, and is this
// one of its endpoints?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/adopt/former.hpp"
#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/lb/service_table.hpp"

namespace penstock::adopt {

class CurrentServices {
 public:
    CurrentServices(const lb::ServiceTable& services, std::span<const KeptEndpoint> kept);

    // The Service with this number that has a frontend, or null.
    [[nodiscard]] const lb::Service* service(ServiceId id) const noexcept {
        return id.value < by_id_.size() ? by_id_[id.value] : nullptr;
    }
    // The endpoint of this Service at this address; unset: it has none there. Those of all its sets, and the
    // kept ones.
    [[nodiscard]] BackendId endpoint(ServiceId service, const IpAddr& address, L4Port port) const noexcept {
        if (slots_.empty()) {
            return {};
        }
        for (size_t at = first(service, address, port);; at = (at + 1) & (slots_.size() - 1)) {
            const KeptEndpoint& slot = slots_[at];
            if (!slot.backend.is_set() ||
                (slot.service == service && slot.port == port && slot.address == address)) {
                return slot.backend;
            }
        }
    }

 private:
    void add(const KeptEndpoint& endpoint);
    // The keys are of this gateway's own configuration, and a table is at most half full.
    [[nodiscard]] size_t first(ServiceId service, const IpAddr& address, L4Port port) const noexcept {
        uint64_t mixed = load<uint64_t>(address.bytes().data()) * 0x9e3779b97f4a7c15ULL;
        mixed ^= load<uint64_t>(address.bytes().data() + 8) ^ uint64_t { service.value } << 16 ^ port;
        mixed *= 0xff51afd7ed558ccdULL;
        return (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15ULL >> 32 & (slots_.size() - 1);
    }

    std::vector<const lb::Service*> by_id_;
    std::vector<KeptEndpoint> slots_;  // a power of two, open addressing; free: `backend` is unset
};

}  // namespace penstock::adopt
