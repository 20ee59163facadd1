// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/affinity_view.hpp"

#include "control/rpc/convert.hpp"

namespace penstock::gateway {

bool matches(const rpc::AffinityFilter& filter, const worker::AffinityView& view) noexcept {
    return (filter.namespace_name.empty() || filter.namespace_name == view.service.namespace_name) &&
           (filter.name.empty() || filter.name == view.service.name) &&
           (!filter.client || *filter.client == view.client);
}

v1::AffinityEntry to_proto(const worker::AffinityView& view) {
    v1::AffinityEntry message;
    *message.mutable_service() = rpc::to_proto(model::ServiceKey{
        view.service.namespace_name, view.service.name, view.service.port_name, view.service.protocol});
    message.set_client(view.client.to_string());
    *message.mutable_backend() = rpc::to_proto(SocketAddress{view.backend.address, view.backend.port});
    message.set_age_ms(view.age_ms);
    message.set_remaining_ms(view.remaining_ms);
    message.set_all_ports(view.service.affinity_scope() == lb::AffinityScope::Service);
    return message;
}

}  // namespace penstock::gateway
