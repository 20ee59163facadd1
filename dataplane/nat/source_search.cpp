// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/source_search.hpp"

namespace penstock::nat {

PortRules SourceSearch::rules_of_address(const PortProposer& ports) const noexcept {
    return rules_towards(ports, *config_, source_.index, host_, key_);
}

const Source* SourceSearch::prefer(PortProposer& ports, const IpAddr& address, L4Port port) noexcept {
    for (uint32_t turn = 0; turn < addresses(); ++turn) {
        if (turn != turn_) {
            turn_to(turn, ports);
        }
        if (config_->addresses[source_.index].address == address && rules_of_address(ports).is_usable(port)) {
            source_.pool = ports.open(key_, hash_, pool_probably_);
            source_.port = port;
            is_preferred_ = true;
            return &source_;
        }
    }
    if (turn_ != 0) {
        turn_to(0, ports);
    }
    return nullptr;
}

const Source* SourceSearch::after_refusal(PortProposer& ports) noexcept {
    ports.refuse(source_.pool, source_.port);
    // The preferred source may have any of the addresses, so the search restarts with the client's first
    // address.
    if (is_preferred_) {
        is_preferred_ = false;
        turn_to(0, ports);
        return first(ports);
    }
    return next(ports);
}

const Source* SourceSearch::next(PortProposer& ports) noexcept {
    for (;;) {
        const PortRules rules = rules_of_address(ports);
        if (const std::optional<L4Port> port = ports.propose(source_.pool, rules)) {
            source_.port = *port;
            return &source_;
        }
        if (turn_ + 1U >= addresses()) {
            return nullptr;
        }
        turn_to(turn_ + 1U, ports);
        source_.pool = ports.open(key_, hash_);
    }
}

void SourceSearch::open_turn(uint32_t turn, PortProposer& ports) noexcept {
    if (turn != turn_) {
        turn_to(turn, ports);
        source_.pool = ports.open(key_, hash_);
    }
}

uint32_t SourceSearch::walk(PortProposer& ports, uint32_t turn,
                            std::span<PortProposer::WalkPosition> out) noexcept {
    open_turn(turn, ports);
    return ports.walk(source_.pool, rules_of_address(ports), out);
}

const Source* SourceSearch::take(PortProposer& ports, uint32_t turn,
                                 const PortProposer::WalkPosition& position) noexcept {
    open_turn(turn, ports);
    ports.go_behind(source_.pool, position);
    source_.port = position.port;
    return &source_;
}

DropReason SourceSearch::failure() const noexcept {
    return fitting_ == 0 ? DropReason::NoSnatAddress : DropReason::SnatPortsExhausted;
}

}  // namespace penstock::nat
