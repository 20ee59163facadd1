// The search for a new full-NAT flow's source: SNAT addresses in the client's order, and ports of each until the connection table takes
// one. The caller steps through it, because only he knows the table; this is all there is to it for one flow:
//
//   SourceSearch search(ports, config, host, request);
//   for (auto source = search.first(ports); source; source = search.after_refusal(ports)) {
//       if (insert(... reverse key to source->address, source->port ...) is done) { search.confirm(ports); return; }    // keep
//       source->pool
//       // the reverse key is taken: try the next
//   }
//   drop(search.failure());
//
// For a burst each step is done for all flows before the next: the constructor (which prefetches the pools' tags), prefetch_pool(),
// first(); then, one flow at a time, the insertion and what follows from it. A flow that does not come to an insertion needs no undoing.
#pragma once

#include <cstdint>
#include <optional>

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

class SourceSearch {
 public:
    SourceSearch() = default;
    // `config` and `host`'s bits are borrowed for as long as the search is used.
    SourceSearch(const PortProposer& ports, const SnatConfig& config, const HostPorts& host, const BindRequest& request) noexcept;
    void prefetch_pool(const PortProposer& ports) const noexcept;

    // Instead of first(): this very source, where it fits the endpoint and may still be handed out. Empty: go on with first().
    [[nodiscard]] std::optional<Source> prefer(PortProposer& ports, const IpAddr& address, L4Port port) noexcept;
    // The source to try, from the first address that has a port. Empty: there is none; see failure().
    [[nodiscard]] std::optional<Source> first(PortProposer& ports) noexcept;
    // The table has the last one already: the one to try instead.
    [[nodiscard]] std::optional<Source> after_refusal(PortProposer& ports) noexcept;
    // The table holds the last one now.
    void confirm(PortProposer& ports) const noexcept;

    // NoSnatAddress: none has the endpoint's family and fits its egress. SnatPortsExhausted: those that fit have no port left towards it.
    [[nodiscard]] DropReason failure() const noexcept;

 private:
    void turn_to(uint32_t turn, const PortProposer& ports) noexcept;
    [[nodiscard]] PoolKey key() const noexcept;
    [[nodiscard]] std::optional<Source> propose(PortProposer& ports) noexcept;

    const SnatConfig* config_ = nullptr;
    HostPorts host_;
    BindRequest request_;
    uint64_t hash_ = 0;  // of key()
    PoolNumber pool_;
    L4Port port_ = 0;
    uint8_t index_ = 0;    // of the address that is being tried
    uint8_t fitting_ = 0;  // how many addresses fit
    uint8_t turn_ = 0;     // how many of them were given up
    bool is_preferred_ = false;
};

}  // namespace penstock::nat
