// SPDX-License-Identifier: Apache-2.0
// The search for the source of a new full-NAT flow: SNAT addresses in the client's order, and ports of each
// address until the connection table accepts one. The caller executes the steps, because only the caller has
// the table. For one flow:
//
//   SourceSearch search(ports, config, host, request);
//   for (const Source* source = search.first(ports); source != nullptr;
//        source = search.after_refusal(ports)) {
//       if (insert(... reverse key to source->address, source->port ...) is done) {
//           search.confirm(ports);    // keep source->pool
//           return;
//       }
//       // the reverse key is taken: try the next
//   }
//   drop(search.failure());
//
// For a burst, each step is executed for all flows before the next step: the constructor (which prefetches
// the pools' tags), prefetch_pool(), first(). The insertion and the steps after it follow for one flow at a
// time. A flow that is not inserted needs no cleanup.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/base/verdict.hpp"
#include "dataplane/nat/port_proposer.hpp"
#include "dataplane/nat/snat.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

struct Source {
    IpAddr address;
    L4Port port = 0;
    uint8_t index = 0;  // of the address in SnatConfig.addresses
    PoolNumber pool;    // for PortProposer::give_back() when the connection ends
};

// The ports that one worker may use towards an endpoint, on the SNAT address with this index. `ports` are the
// worker's; only their constant data is read, so any thread may call it (explain does).
[[nodiscard]] PENSTOCK_ALWAYS_INLINE PortRules rules_towards(const PortProposer& ports,
                                                             const SnatConfig& config, size_t index,
                                                             const HostPorts& host,
                                                             const PoolKey& key) noexcept {
    PortRules rules = rules_for(config, config.addresses[index], host);
    rules.own = ports.own_ports(key, config.addresses.reply_egress(index));
    return rules;
}

// The returned Source is a member of the search; the next call changes it.
class SourceSearch {
 public:
    SourceSearch() = default;
    // `config` and the bits of `host` are borrowed and must outlive the search.
    PENSTOCK_ALWAYS_INLINE SourceSearch(const PortProposer& ports, const SnatConfig& config,
                                        const HostPorts& host, const BindRequest& request) noexcept
        : config_(&config),
          host_(host),
          key_{{}, request.endpoint, request.endpoint_port, request.protocol},
          fitting_(config.addresses.fitting(request.endpoint, request.egress, request.group)),
          client_hash_(request.client_hash) {
        if (fitting_ != 0) {
            turn_to(0, ports);
        }
    }
    PENSTOCK_ALWAYS_INLINE void prefetch_pool(const PortProposer& ports) noexcept {
        if (fitting_ != 0) {
            pool_probably_ = ports.prefetch_pool(hash_);
        }
    }

    // Tries this particular source instead of first(), if it fits the endpoint and may still be allocated.
    // Null: continue with first().
    [[nodiscard]] const Source* prefer(PortProposer& ports, const IpAddr& address, L4Port port) noexcept;
    // The same with the first address.
    [[nodiscard]] const Source* prefer(PortProposer& ports, L4Port port) noexcept {
        return fitting_ == 0 ? nullptr : prefer(ports, config_->addresses[source_.index].address, port);
    }
    // The source to try, from the first address that has a port. Null: no source is available; see failure().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Source* first(PortProposer& ports) noexcept {
        if (fitting_ == 0) [[unlikely]] {
            return nullptr;
        }
        source_.pool = ports.open(key_, hash_, pool_probably_);
        source_.port = ports.propose_in_block(source_.pool, host_.version);
        return source_.port != 0 ? &source_ : next(ports);
    }
    // The next source to try, after the table has refused the last one.
    [[nodiscard]] const Source* after_refusal(PortProposer& ports) noexcept;
    // Call after the table has accepted the last source.
    PENSTOCK_ALWAYS_INLINE void confirm(PortProposer& ports) const noexcept {
        ports.bind(source_.pool, source_.port);
    }

    // For use when all addresses are out of ports. Returns the least recently allocated ports of the address
    // of `turn`, which is below addresses(), whether taken or not (PortProposer::walk()).
    [[nodiscard]] uint32_t walk(PortProposer& ports, uint32_t turn,
                                std::span<PortProposer::WalkPosition> out) noexcept;
    // Takes one of those ports instead of first(), after its previous connection has been removed. The next
    // walk of its address continues after it.
    [[nodiscard]] const Source* take(PortProposer& ports, uint32_t turn,
                                     const PortProposer::WalkPosition& position) noexcept;
    // The number of fitting addresses.
    [[nodiscard]] uint32_t addresses() const noexcept {
        return static_cast<uint32_t>(std::popcount(fitting_));
    }
    // The address of the last of these calls (the current address).
    [[nodiscard]] const IpAddr& address() const noexcept { return source_.address; }

    // NoSnatAddress: no address has the endpoint's family and fits its egress. SnatPortsExhausted: the
    // fitting addresses have no port left towards the endpoint.
    [[nodiscard]] DropReason failure() const noexcept;

 private:
    // Selects the address of this turn; its pool is not opened yet.
    PENSTOCK_ALWAYS_INLINE void turn_to(uint32_t turn, const PortProposer& ports) noexcept {
        turn_ = static_cast<uint8_t>(turn);
        source_.index = choice_of(fitting_, client_hash_, turn);
        source_.address = key_.snat = config_->addresses[source_.index].address;
        pool_probably_ = {};
        hash_ = ports.hash(key_);
        ports.prefetch(hash_);
    }
    // The rules of the current address.
    [[nodiscard]] PortRules rules_of_address(const PortProposer& ports) const noexcept;
    // A port of the address with the open pool, or of one of the following addresses.
    [[nodiscard]] const Source* next(PortProposer& ports) noexcept;
    void open_turn(uint32_t turn, PortProposer& ports) noexcept;

    const SnatConfig* config_ = nullptr;
    HostPorts host_;
    PoolKey key_;  // with the current address
    Source source_;
    SnatAddressSet fitting_ = 0;
    uint64_t client_hash_ = 0;
    uint64_t hash_ = 0;  // of key_
    PoolNumber pool_probably_;
    uint8_t turn_ = 0;  // number of addresses given up
    bool is_preferred_ = false;
};

}  // namespace penstock::nat
