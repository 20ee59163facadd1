#include "dataplane/lb/service_table.hpp"

#include <algorithm>
#include <string>

namespace penstock::lb {
namespace {

constexpr size_t kPortWords = 65'536 / 64;

size_t protocol_index(Protocol protocol) noexcept {
    switch (protocol) {
        case Protocol::Tcp:
            return 0;
        case Protocol::Udp:
            return 1;
        case Protocol::Sctp:
            return 2;
    }
    return 0;
}

uint64_t hash_of(const IpAddr& address, const KeyedMix& mix) noexcept {
    return mix.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8));
}

std::string describe(const Frontend& frontend) {
    return std::string(penstock::to_string(frontend.protocol)) + " " + frontend.address.to_string() + " port " +
           std::to_string(frontend.port);
}

}  // namespace

Result<std::shared_ptr<const ServiceTable>> ServiceTable::build(std::vector<Frontend> frontends,
                                                                std::vector<std::shared_ptr<const Service>> services,
                                                                const ServiceTable* previous) {
    auto table = std::make_shared<ServiceTable>();
    table->mix_ = KeyedMix(HashKey::random());
    table->frontends_ = std::move(frontends);
    table->services_ = std::move(services);
    table->rows_.reserve(table->frontends_.size());
    table->row_index_ = RowIndex(table->frontends_.size());
    table->vip_index_ = RowIndex(table->frontends_.size());

    // Exact rows first: a NodePort row then finds its tuple taken and steps back (NODEPORT-004).
    for (const bool node_ports : {false, true}) {
        for (const Frontend& frontend : table->frontends_) {
            if ((frontend.cls == FrontendClass::NodePort) != node_ports) {
                continue;
            }
            if (Status added = table->add_row(frontend); !added) {
                return std::unexpected(std::move(added.error()));
            }
        }
    }

    size_t kept_max = 0;
    for (const auto& service : table->services_) {
        for (const BackendSet& set : service->sets) {
            kept_max += set.source == SourceMode::Keep ? set.usable.size() : 0;
        }
    }
    const size_t inherited_max = previous == nullptr ? 0 : kRememberedMax;
    table->kept_index_ = RowIndex(kept_max + (previous == nullptr ? 0 : std::min(inherited_max, previous->kept_backends_.size())));
    for (const auto& service : table->services_) {
        table->add_kept_backends(*service);
    }
    if (previous != nullptr) {
        table->remember(*previous);
    }
    return table;
}

Status ServiceTable::add_row(const Frontend& frontend) {
    if (frontend.service == nullptr || frontend.set >= frontend.service->sets.size()) {
        return fail(Errc::Internal, "frontend " + describe(frontend) + " leads to no backend set");
    }
    const uint64_t row_hash = hash(frontend.address, frontend.port, frontend.protocol);
    const FrontendRow* present = find(frontend.address, frontend.port, frontend.protocol, row_hash);
    const bool is_node_port = frontend.cls == FrontendClass::NodePort;
    if (present != nullptr) {
        const bool outranked = is_node_port && present->cls != FrontendClass::NodePort;
        const bool repeated = is_node_port && present->service == frontend.service.get() && present->set == frontend.set;
        if (!outranked && !repeated) {
            return fail(Errc::Internal, "frontend " + describe(frontend) + " is claimed by service " + present->service->display_name() +
                                            " and by service " + frontend.service->display_name());
        }
    } else {
        row_index_.insert(row_hash, static_cast<uint32_t>(rows_.size()));
        rows_.push_back({.address = frontend.address,
                         .service = frontend.service.get(),
                         .filter = frontend.filter.get(),
                         .port = frontend.port,
                         .protocol = frontend.protocol,
                         .cls = frontend.cls,
                         .set = frontend.set,
                         .modes = {.translate_seen = frontend.service->sets[frontend.set].source == SourceMode::Translate,
                                   .keep_seen = frontend.service->sets[frontend.set].source == SourceMode::Keep,
                                   .current = frontend.service->sets[frontend.set].source}});
    }

    if (is_node_port) {
        // Declared, even where an exact row hides it on this address.
        std::vector<uint64_t>& bits = node_ports_[protocol_index(frontend.protocol)];
        bits.resize(kPortWords);
        bits[frontend.port / 64] |= uint64_t{1} << (frontend.port % 64);
    } else if (frontend.cls != FrontendClass::ClusterIp && !is_vip(frontend.address)) {
        vip_index_.insert(hash_of(frontend.address, mix_), static_cast<uint32_t>(vips_.size()));
        vips_.push_back(frontend.address);
    }
    return {};
}

// Services may share an endpoint (two service ports with one target port), so a repetition is ordinary.
void ServiceTable::add_kept_backends(const Service& service) {
    for (const BackendSet& set : service.sets) {
        if (set.source != SourceMode::Keep) {
            continue;
        }
        for (const Backend& backend : set.usable) {
            add_kept_backend({backend.address, backend.port, service.protocol});
        }
    }
}

void ServiceTable::add_kept_backend(const KeptBackend& backend) {
    if (!is_kept_backend(backend.address, backend.port, backend.protocol)) {
        kept_index_.insert(hash(backend.address, backend.port, backend.protocol), static_cast<uint32_t>(kept_backends_.size()));
        kept_backends_.push_back(backend);
    }
}

void ServiceTable::remember(const ServiceTable& previous) {
    for (FrontendRow& row : rows_) {
        const PlacementModes before = previous.placement_modes(row.address, row.port, row.protocol);
        row.modes.translate_seen |= before.translate_seen;
        row.modes.keep_seen |= before.keep_seen;
    }
    const size_t in_force = kept_backends_.size();
    for (const KeptBackend& backend : previous.kept_backends_) {
        if (kept_backends_.size() - in_force == kRememberedMax) {
            break;
        }
        add_kept_backend(backend);
    }
    retired_index_ = RowIndex(std::min(kRememberedMax, previous.rows_.size() + previous.retired_.size()));
    for (const FrontendRow& row : previous.rows_) {
        retire({row.address, row.port, row.protocol, row.modes});
    }
    for (const RetiredFrontend& gone : previous.retired_) {
        retire(gone);
    }
}

void ServiceTable::retire(const RetiredFrontend& gone) {
    if (retired_.size() == kRememberedMax || placement_modes(gone.address, gone.port, gone.protocol).any()) {
        return;  // in force again, or already remembered
    }
    retired_index_.insert(hash(gone.address, gone.port, gone.protocol), static_cast<uint32_t>(retired_.size()));
    retired_.push_back(gone);
}

PlacementModes ServiceTable::placement_modes(const IpAddr& address, L4Port port, Protocol protocol, uint64_t hash) const noexcept {
    if (const FrontendRow* row = find(address, port, protocol, hash)) {
        return row->modes;
    }
    const uint32_t gone = retired_index_.find(hash, [&](uint32_t candidate) {
        const RetiredFrontend& r = retired_[candidate];
        return r.address == address && r.port == port && r.protocol == protocol;
    });
    return gone == RowIndex::kNoRow ? PlacementModes{} : retired_[gone].modes;
}

const FrontendRow* ServiceTable::find(const IpAddr& address, L4Port port, Protocol protocol, uint64_t hash) const noexcept {
    const uint32_t row = row_index_.find(hash, [&](uint32_t candidate) {
        const FrontendRow& r = rows_[candidate];
        return r.address == address && r.port == port && r.protocol == protocol;
    });
    return row == RowIndex::kNoRow ? nullptr : &rows_[row];
}

bool ServiceTable::is_vip(const IpAddr& address) const noexcept {
    return vip_index_.find(hash_of(address, mix_), [&](uint32_t row) { return vips_[row] == address; }) != RowIndex::kNoRow;
}

bool ServiceTable::is_kept_backend(const IpAddr& address, L4Port port, Protocol protocol) const noexcept {
    const KeptBackend wanted{address, port, protocol};
    return kept_index_.find(hash(address, port, protocol), [&](uint32_t row) { return kept_backends_[row] == wanted; }) != RowIndex::kNoRow;
}

const uint64_t* ServiceTable::node_port_bits(Protocol protocol) const noexcept {
    static constexpr std::array<uint64_t, kPortWords> kNone{};
    const std::vector<uint64_t>& bits = node_ports_[protocol_index(protocol)];
    return bits.empty() ? kNone.data() : bits.data();
}

}  // namespace penstock::lb
