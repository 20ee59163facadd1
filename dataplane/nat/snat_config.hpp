// SPDX-License-Identifier: Apache-2.0
// The addresses and ports that new full-NAT flows may use. Part of the snapshot; changes do not affect live
// flows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "dataplane/base/address_filter.hpp"
#include "dataplane/base/check.hpp"
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

// The ports of a SNAT address for new flows. Two gateways may use one address at the same time, with
// different ports (docs/adr/0041).
enum class PortPart : uint8_t {
    All,
    Primary,  // seven of eight
    Heir,     // the eighth
    None,     // no flow is opened with the address: it belongs to other gateways
};

// The ports of a part in each block of 64 (port_blocks.hpp), as bits. A block belongs to one worker or is
// distributed among the workers by a hash of the port, so each worker has ports of both parts.
[[nodiscard]] constexpr uint64_t ports_in_block(PortPart part) noexcept {
    constexpr uint64_t kEighth = 0x8080'8080'8080'8080;  // ports p with p % 8 == 7
    switch (part) {
        case PortPart::All:
            break;
        case PortPart::Primary:
            return ~kEighth;
        case PortPart::Heir:
            return kEighth;
        case PortPart::None:
            return 0;
    }
    return ~uint64_t{0};
}

struct SnatAddress {
    IpAddr address;
    // The port with the twin that has this address. Unset if the operator configured it with --snat-address.
    // A default address is used only for endpoints that are reached through its port.
    NicPortId egress;
    // True if Linux uses the address too: the kernel's ephemeral range and declared NodePorts are excluded.
    bool shared_with_host = false;
    // The flows that may use it. 0: all flows of the gateway. Share s (docs/adr/0041) has group s + 1, which
    // only flows of its VIPs use (lb::FrontendRow::snat_group).
    uint8_t group = 0;
    PortPart part = PortPart::All;
    bool operator==(const SnatAddress&) const = default;
};

// In place of a group: that of the share of the flow's client (docs/adr/0051, spread VIPs).
inline constexpr uint8_t kGroupOfClient = 0xff;

// Bit n: element n of SnatAddresses.
using SnatAddressSet = uint64_t;
static_assert(limits::kSnatAddressesMax <= 64);

// A list of SNAT addresses with an index of the fitting ones for each family, egress and group, which is read
// for every new flow and rarely changes.
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
        if (address.part != PortPart::None) {
            of_group_[std::min<size_t>(address.group, of_group_.size() - 1)] |= self;
        }
    }

    // The addresses that a flow of a frontend with this `group` may use when it leaves through `egress` to
    // `endpoint`. If none of the group fits, for example because a share has no address of the endpoint's
    // family, they are those of group 0.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE SnatAddressSet fitting(const IpAddr& endpoint, NicPortId egress,
                                                                uint8_t group) const noexcept {
        PENSTOCK_ASSERT(group < of_group_.size());
        const SnatAddressSet all = fitting_[is_v6(endpoint)][row_of(egress)];
        const SnatAddressSet own = all & of_group_[group];
        return own != 0 ? own : all & of_group_[0];
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
    // Whether the gateway opens flows with the address. Optimized for the negative result: it is called for
    // the source of each new flow. An address of other gateways (PortPart::None) is an ordinary client.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool contains(const IpAddr& address) const noexcept {
        return may_be_listed_.may_hold(address) && is_used(address);
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
    [[nodiscard]] bool is_used(const IpAddr& address) const noexcept {
        const SnatAddress* listed = find(address);
        return listed != nullptr && listed->part != PortPart::None;
    }
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
    std::array<SnatAddressSet, limits::kSnatGroupsMax> of_group_{};
};

struct SnatConfig {
    SnatAddresses addresses;                 // the index is the number of the SNAT address
    PortRange ports;                         // --snat-ports
    PortRange host_ephemeral{32768, 60999};  // net.ipv4.ip_local_port_range of the gateway's namespace
    bool operator==(const SnatConfig&) const = default;
};

}  // namespace penstock::nat
