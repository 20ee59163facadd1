#include "dataplane/nat/source_search.hpp"

namespace penstock::nat {

SourceSearch::SourceSearch(const PortProposer& ports, const SnatConfig& config, const HostPorts& host, const BindRequest& request) noexcept
    : config_(&config), host_(host), request_(request), fitting_(count_fitting(config, request)) {
    if (fitting_ > 0) {
        turn_to(0, ports);
    }
}

void SourceSearch::turn_to(uint32_t turn, const PortProposer& ports) noexcept {
    turn_ = static_cast<uint8_t>(turn);
    index_ = fitting_at(*config_, request_, static_cast<uint32_t>((request_.client_hash % fitting_ + turn) % fitting_));
    pool_ = {};
    hash_ = ports.hash(key());
    ports.prefetch(hash_);
}

PoolKey SourceSearch::key() const noexcept {
    return {config_->addresses[index_].address, request_.endpoint, request_.endpoint_port, request_.protocol};
}

void SourceSearch::prefetch_pool(const PortProposer& ports) const noexcept {
    if (fitting_ > 0) {
        ports.prefetch_pool(hash_);
    }
}

std::optional<Source> SourceSearch::prefer(PortProposer& ports, const IpAddr& address, L4Port port) noexcept {
    for (uint32_t turn = 0; turn < fitting_; ++turn) {
        if (turn != turn_) {
            turn_to(turn, ports);
        }
        const SnatAddress& snat = config_->addresses[index_];
        if (snat.address == address && (rules_for(*config_, snat, host_).usable(port / kPortsPerBlock) >> port % kPortsPerBlock & 1) != 0) {
            pool_ = ports.open(key(), hash_);
            port_ = port;
            is_preferred_ = true;
            return Source{address, port, index_, pool_};
        }
    }
    if (fitting_ > 0) {
        turn_to(0, ports);
    }
    return std::nullopt;
}

std::optional<Source> SourceSearch::first(PortProposer& ports) noexcept {
    return fitting_ == 0 ? std::nullopt : propose(ports);
}

std::optional<Source> SourceSearch::after_refusal(PortProposer& ports) noexcept {
    ports.refuse(pool_, port_);
    if (is_preferred_) {  // it may be of any of the addresses: the search begins where it would have without it
        is_preferred_ = false;
        turn_to(0, ports);
    }
    return propose(ports);
}

void SourceSearch::confirm(PortProposer& ports) const noexcept {
    ports.bind(pool_, port_);
}

std::optional<Source> SourceSearch::propose(PortProposer& ports) noexcept {
    for (;;) {
        if (!pool_.is_set()) {
            pool_ = ports.open(key(), hash_);
        }
        const SnatAddress& snat = config_->addresses[index_];
        if (const std::optional<L4Port> port = ports.propose(pool_, rules_for(*config_, snat, host_))) {
            port_ = *port;
            return Source{snat.address, port_, index_, pool_};
        }
        if (turn_ + 1U >= fitting_) {
            return std::nullopt;
        }
        turn_to(turn_ + 1U, ports);
    }
}

DropReason SourceSearch::failure() const noexcept {
    return fitting_ == 0 ? DropReason::NoSnatAddress : DropReason::SnatPortsExhausted;
}

}  // namespace penstock::nat
