// SPDX-License-Identifier: Apache-2.0
// The addresses and ports that new full-NAT flows may use. Part of the snapshot; changes do not affect live
// flows.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "dataplane/base/address_filter.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::nat {

struct PortRange {
    L4Port first = 1024;
    L4Port last = 65535;  // inclusive
    bool operator==(const PortRange&) const = default;
};

struct SnatAddress {
    IpAddr address;
    // The port with the twin that has this address. Unset if the operator configured it with --snat-address.
    // A default address is used only for endpoints that are reached through its port.
    NicPortId egress;
    // True if Linux uses the address too: the kernel's ephemeral range and declared NodePorts are excluded.
    bool shared_with_host = false;
    bool operator==(const SnatAddress&) const = default;
};

// Bit n: element n of SnatAddresses.
using SnatAddressSet = uint64_t;
static_assert(limits::kSnatAddressesMax <= 64);

// A list of SNAT addresses with an index of the fitting ones for each family and egress, which is read for
// every new flow and rarely changes.
class SnatAddresses {
 public:
    SnatAddresses() = default;
    // At most limits::kSnatAddressesMax; further addresses are ignored.
    SnatAddresses(const std::vector<SnatAddress>& addresses) { append(addresses); }
    SnatAddresses(std::initializer_list<SnatAddress> addresses) { append(addresses); }
    void push_back(const SnatAddress& address) {
        if (list_.size() == limits::kSnatAddressesMax) {
            return;
        }
        const SnatAddressSet self = SnatAddressSet{1} << list_.size();
        const SnatAddress* same = find(address.address);
        reply_egress_.push_back(same == nullptr ? address.egress : same->egress);
        list_.push_back(address);
        may_be_listed_.add(address.address);
        for (uint8_t egress = 0; egress <= limits::kNicPortsMax; ++egress) {
            if (!address.egress.is_set() || address.egress.value == egress) {
                fitting_[is_v6(address.address)][egress] |= self;
            }
        }
    }

    // The addresses that a flow to `endpoint` may use when it leaves through `egress`.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE SnatAddressSet fitting(const IpAddr& endpoint,
                                                                NicPortId egress) const noexcept {
        return fitting_[is_v6(endpoint)][row_of(egress)];
    }

    // The first element with this address, or null.
    [[nodiscard]] const SnatAddress* find(const IpAddr& address) const noexcept {
        for (const SnatAddress& candidate : list_) {
            if (candidate.address == address) {
                return &candidate;
            }
        }
        return nullptr;
    }
    // Whether the list contains the address. Optimized for the negative result: it is called for the source
    // of each new flow.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool contains(const IpAddr& address) const noexcept {
        return may_be_listed_.may_hold(address) && find(address) != nullptr;
    }
    // The egress NicPort with the RSS that determines the owner of a reply to element `number`. It is the
    // egress of the first element with the same address, because a reply contains only the address.
    [[nodiscard]] NicPortId reply_egress(size_t number) const noexcept { return reply_egress_[number]; }

    [[nodiscard]] const SnatAddress& operator[](size_t number) const noexcept { return list_[number]; }
    [[nodiscard]] size_t size() const noexcept { return list_.size(); }
    [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
    [[nodiscard]] auto begin() const noexcept { return list_.begin(); }
    [[nodiscard]] auto end() const noexcept { return list_.end(); }
    bool operator==(const SnatAddresses& other) const { return list_ == other.list_; }

 private:
    void append(const auto& addresses) {
        for (const SnatAddress& address : addresses) {
            push_back(address);
        }
    }
    static constexpr size_t is_v6(const IpAddr& address) noexcept { return address.is_v4() ? 0 : 1; }
    // The last row is for an egress that is not a port: only addresses without an egress fit.
    static constexpr uint8_t row_of(NicPortId egress) noexcept {
        return egress.value < limits::kNicPortsMax ? egress.value : uint8_t{limits::kNicPortsMax};
    }

    std::vector<SnatAddress> list_;
    std::vector<NicPortId> reply_egress_;
    AddressFilter may_be_listed_;
    std::array<std::array<SnatAddressSet, limits::kNicPortsMax + 1>, 2> fitting_{};
};

struct SnatConfig {
    SnatAddresses addresses;                 // the index is the number of the SNAT address
    PortRange ports;                         // --snat-ports
    PortRange host_ephemeral{32768, 60999};  // net.ipv4.ip_local_port_range of the gateway's namespace
    bool operator==(const SnatConfig&) const = default;
};

}  // namespace penstock::nat
