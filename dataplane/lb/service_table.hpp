// All Services of one snapshot and the frontends that lead to them. Built by the control thread, then read-only for every worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/hash.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

// What a worker needs of a frontend, two to a cache line.
struct FrontendRow {
    IpAddr address;
    const Service* service = nullptr;     // null: the slot is free; kept alive by ServiceTable::services_
    const SourceFilter* filter = nullptr;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    FrontendClass cls = FrontendClass::ExternalIp;
    uint8_t set = 0;
    [[nodiscard]] const BackendSet& backends() const noexcept { return service->sets[set]; }
};

class ServiceTable {
   public:
    ServiceTable() = default;  // no Services

    // Frontends must be unique by (address, port, protocol): the semantics room has settled conflicts (SVC-018). A duplicate is Internal.
    // NodePort rows rank below exact ones (NODEPORT-004): where both claim one tuple, the exact row is kept and it is no error.
    // Control thread.
    static Result<std::shared_ptr<const ServiceTable>> build(std::vector<Frontend> frontends,
                                                              std::vector<std::shared_ptr<const Service>> services);

    // The frontend of a packet's destination, or null. One to two cache lines; any worker.
    [[nodiscard]] const FrontendRow* find(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    // True where some frontend of class L or X, whatever its port, has this address (for VipPortClosed).
    [[nodiscard]] bool is_vip(const IpAddr& address) const noexcept;
    // True where a NodePort frontend exists with this number and protocol on any address; SNAT leaves such ports alone.
    [[nodiscard]] bool is_node_port(L4Port port, Protocol protocol) const noexcept;
    // True where a backend set with SourceMode::Keep holds this endpoint: a packet *from* it may be the reply of a flow that is placed by
    // the client's address.
    [[nodiscard]] bool is_kept_backend(const IpAddr& address, L4Port port, Protocol protocol) const noexcept;

    [[nodiscard]] const std::vector<std::shared_ptr<const Service>>& services() const noexcept { return services_; }
    [[nodiscard]] const std::vector<Frontend>& frontends() const noexcept { return frontends_; }

   private:
    // Layout is the implementer's: see service_table.cpp.
    std::vector<Frontend> frontends_;
    std::vector<std::shared_ptr<const Service>> services_;
    std::vector<FrontendRow> rows_;
    std::vector<IpAddr> vips_;
    std::vector<uint64_t> node_port_bits_;
    std::vector<FrontendRow> kept_backends_;
    HashKey key_{};
};

}  // namespace penstock::lb
