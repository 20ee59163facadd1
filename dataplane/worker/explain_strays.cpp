// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/explain_strays.hpp"

#include "dataplane/pipeline/opening/strays.hpp"

namespace penstock::worker {

std::optional<ShareFinding> share_finding(const config::Snapshot& snapshot, const packet::FlowKey& key,
                                          NicPortId arrival) {
    const auto candidates = pipeline::candidates_of(snapshot, key);
    if (!candidates) {
        return std::nullopt;
    }
    const shares::Strays& strays = *snapshot.strays;
    ShareFinding finding{.text = "share " + std::to_string(candidates->share),
                         .precedes_copies = pipeline::precedes_copies(snapshot, key),
                         .stray_to = std::nullopt};
    for (const auto number : candidates->gateways) {
        const shares::Strays::Gateway* const gateway = strays.gateway(number);
        if (gateway == nullptr) {
            continue;
        }
        if (strays.is_self(number)) {
            finding.text += ": served here, by gateway " + gateway->name;
            return finding;
        }
        if (!pipeline::may_be_forwarded(snapshot, key, arrival)) {
            finding.text += ": not forwarded, because the source may not arrive on this port";
            return finding;
        }
        const pipeline::StrayState state = pipeline::stray_state(snapshot, *gateway);
        if (state == pipeline::StrayState::Reached) {
            finding.text += ": a stray, forwarded unchanged to gateway " + gateway->name + " at " +
                            gateway->link.to_string() + ", which serves it; here ends the explanation";
            finding.stray_to = gateway->link;
            return finding;
        }
        finding.text += ": gateway " + gateway->name + " cannot get it (" + to_string(state) + ")";
    }
    finding.text += ": served here, because no gateway of the share can get it";
    return finding;
}

}  // namespace penstock::worker
