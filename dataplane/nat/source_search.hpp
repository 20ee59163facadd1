// The search for a new full-NAT flow's source: SNAT addresses in the client's order, and ports of each until the connection table takes
// one. The caller steps through it, because only he knows the table; this is all there is to it for one flow:
//
//   SourceSearch search(ports, config, host, request);
//   for (const Source* source = search.first(ports); source != nullptr; source = search.after_refusal(ports)) {
//       if (insert(... reverse key to source->address, source->port ...) is done) {
//           search.confirm(ports);    // keep source->pool
//           return;
//       }
//       // the reverse key is taken: try the next
//   }
//   drop(search.failure());
//
// For a burst each step is done for all flows before the next: the constructor (which prefetches the pools' tags), prefetch_pool(),
// first(); then, one flow at a time, the insertion and what follows from it. A flow that does not come to an insertion needs no undoing.
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
    PoolNumber pool;    // for PortProposer::give_back() when the connection goes
};

// A source that it answers is its own: it changes with the next question.
class SourceSearch {
 public:
    SourceSearch() = default;
    // `config` and `host`'s bits are borrowed for as long as the search is used.
    PENSTOCK_ALWAYS_INLINE SourceSearch(const PortProposer& ports, const SnatConfig& config,
                                        const HostPorts& host, const BindRequest& request) noexcept
        : config_(&config),
          host_(host),
          key_{{}, request.endpoint, request.endpoint_port, request.protocol},
          fitting_(config.addresses.fitting(request.endpoint, request.egress)),
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

    // Instead of first(): this very source, where it fits the endpoint and may still be handed out. Null: go on with first().
    [[nodiscard]] const Source* prefer(PortProposer& ports, const IpAddr& address, L4Port port) noexcept;
    // The same with the first address.
    [[nodiscard]] const Source* prefer(PortProposer& ports, L4Port port) noexcept {
        return fitting_ == 0 ? nullptr : prefer(ports, config_->addresses[source_.index].address, port);
    }
    // The source to try, from the first address that has a port. Null: there is none; see failure().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Source* first(PortProposer& ports) noexcept {
        if (fitting_ == 0) [[unlikely]] {
            return nullptr;
        }
        source_.pool = ports.open(key_, hash_, pool_probably_);
        source_.port = ports.propose_in_block(source_.pool, host_.version);
        return source_.port != 0 ? &source_ : next(ports);
    }
    // The table has the last one already: the one to try instead.
    [[nodiscard]] const Source* after_refusal(PortProposer& ports) noexcept;
    // The table holds the last one now.
    PENSTOCK_ALWAYS_INLINE void confirm(PortProposer& ports) const noexcept {
        ports.bind(source_.pool, source_.port);
    }

    // Where all addresses are out of ports: the ports of the address of `turn`, below addresses(), that were handed out longest ago, taken
    // or not (PortProposer::walk()).
    [[nodiscard]] uint32_t walk(PortProposer& ports, uint32_t turn,
                                std::span<PortProposer::Place> out) noexcept;
    // One of those, whose former connection is gone, instead of first(). The walk of its address goes on behind it.
    [[nodiscard]] const Source* take(PortProposer& ports, uint32_t turn,
                                     const PortProposer::Place& place) noexcept;
    // How many fit.
    [[nodiscard]] uint32_t addresses() const noexcept {
        return static_cast<uint32_t>(std::popcount(fitting_));
    }
    // The address that the last of these was about.
    [[nodiscard]] const IpAddr& address() const noexcept { return source_.address; }

    // NoSnatAddress: none has the endpoint's family and fits its egress. SnatPortsExhausted: those that fit have no port left towards it.
    [[nodiscard]] DropReason failure() const noexcept;

 private:
    // To the address of that turn; its pool is not open yet.
    PENSTOCK_ALWAYS_INLINE void turn_to(uint32_t turn, const PortProposer& ports) noexcept {
        turn_ = static_cast<uint8_t>(turn);
        source_.index = choice_of(fitting_, client_hash_, turn);
        source_.address = key_.snat = config_->addresses[source_.index].address;
        pool_probably_ = {};
        hash_ = ports.hash(key_);
        ports.prefetch(hash_);
    }
    // Of the address that is being tried.
    [[nodiscard]] PortRules rules_of_address(const PortProposer& ports) const noexcept;
    // A port of the address whose pool is open, or of those behind it.
    [[nodiscard]] const Source* next(PortProposer& ports) noexcept;
    void open_turn(uint32_t turn, PortProposer& ports) noexcept;

    const SnatConfig* config_ = nullptr;
    HostPorts host_;
    PoolKey key_;  // with the address that is being tried
    Source source_;
    SnatAddressSet fitting_ = 0;
    uint64_t client_hash_ = 0;
    uint64_t hash_ = 0;  // of key_
    PoolNumber pool_probably_;
    uint8_t turn_ = 0;  // how many addresses were given up
    bool is_preferred_ = false;
};

}  // namespace penstock::nat
