// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/fair_share.hpp"

#include <algorithm>

#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

using conn::Appraisal;
using conn::Worth;

namespace {
uint32_t held_by(const WorkerContext& ctx, ServiceId service) noexcept {
    return static_cast<uint32_t>(ctx.counters.services[service.value].connections.read());
}
}  // namespace

FairShare::FairShare(const WorkerContext& ctx, ServiceId service, const IpAddr& client) noexcept
    : ctx_(ctx),
      handshake_units_(static_cast<int32_t>(ctx.clock.units(ctx.rate.seconds(kHandshakeS)))),
      of_service_(held_by(ctx, service) + 1),
      of_prefix_(ctx.prefixes.of(PrefixCounts::slot_of(client, ctx.owner.mix)) + 1) {}

Appraisal FairShare::appraise(const conn::Entry& connection) const noexcept {
    const Worth worth = conn::worth_of(connection);
    if (worth == Worth::Finished || (worth == Worth::Keep && connection.protocol != Protocol::Udp)) {
        return {worth, 0};
    }
    const uint32_t service = held_by(ctx_, connection.service);
    const uint32_t prefix = ctx_.prefixes.of(prefix_slot_of(connection, ctx_.owner.mix));
    if (worth == Worth::Keep) {
        const uint32_t surplus =
            std::max(is_larger(service, of_service_) ? service : 0,
                     prefix >= kPrefixFloor && is_larger(prefix, of_prefix_) ? prefix : 0);
        return surplus == 0 ? Appraisal{} : Appraisal{Worth::Surplus, surplus};
    }
    const bool is_young = units_between(connection.opened_at, ctx_.now_coarse) < handshake_units_;
    const bool is_of_smaller =
        is_larger(of_service_, service) || (of_prefix_ >= kPrefixFloor && is_larger(of_prefix_, prefix));
    return {is_young && is_of_smaller ? Worth::Keep : worth, 0};
}

}  // namespace penstock::pipeline
