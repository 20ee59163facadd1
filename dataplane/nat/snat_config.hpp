// Which addresses and ports new full-NAT flows may take. Part of the snapshot; changes leave live flows alone.
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
    // The port this address belongs to as a twin's own, or unset where the operator named it with --snat-address. A default address is
    // used only for endpoints that leave through its port.
    NicPortId egress;
    // True where Linux uses the address too: the kernel's ephemeral range and declared NodePorts are left out.
    bool shared_with_host = false;
    bool operator==(const SnatAddress&) const = default;
};

// Bit n: number n of SnatAddresses.
using SnatAddressSet = uint64_t;
static_assert(limits::kSnatAddressesMax <= 64);

// A list of SNAT addresses that knows, for each family and egress, which of them fit: asked for every new flow, and changed hardly ever.
class SnatAddresses {
 public:
    SnatAddresses() = default;
    // At most limits::kSnatAddressesMax; those beyond are left out.
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

    // Those that a flow to `endpoint` may leave with through `egress`.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE SnatAddressSet fitting(const IpAddr& endpoint,
                                                                NicPortId egress) const noexcept {
        return fitting_[is_v6(endpoint)][row_of(egress)];
    }

    // The first with that address, or null.
    [[nodiscard]] const SnatAddress* find(const IpAddr& address) const noexcept {
        for (const SnatAddress& candidate : list_) {
            if (candidate.address == address) {
                return &candidate;
            }
        }
        return nullptr;
    }
    // Whether there is one, for addresses that hardly ever are: asked of each new flow's source.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool contains(const IpAddr& address) const noexcept {
        return may_be_listed_.may_hold(address) && find(address) != nullptr;
    }
    // The egress whose RSS says who owns a reply to number `number`: that of the first with the same address, which is all a reply shows.
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
    // The last row is for an egress that is no port: only addresses of any egress fit it.
    static constexpr uint8_t row_of(NicPortId egress) noexcept {
        return egress.value < limits::kNicPortsMax ? egress.value : uint8_t{limits::kNicPortsMax};
    }

    std::vector<SnatAddress> list_;
    std::vector<NicPortId> reply_egress_;
    AddressFilter may_be_listed_;
    std::array<std::array<SnatAddressSet, limits::kNicPortsMax + 1>, 2> fitting_{};
};

struct SnatConfig {
    SnatAddresses addresses;                 // the index is the SNAT address's number
    PortRange ports;                         // --snat-ports
    PortRange host_ephemeral{32768, 60999};  // net.ipv4.ip_local_port_range of the gateway's namespace
    bool operator==(const SnatConfig&) const = default;
};

}  // namespace penstock::nat
