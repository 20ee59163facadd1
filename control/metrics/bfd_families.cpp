// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/bfd_families.hpp"

#include <utility>

#include "control/metrics/family.hpp"

namespace penstock::metrics {

using prometheus::MetricFamily;

void add_bfd_families(const BfdReading& bfd, std::vector<MetricFamily>& out) {
    out.push_back(
        single(gauge("penstock_bfd_connected", "1 while bfdd is connected"), bfd.connected ? 1 : 0));
    MetricFamily up = gauge("penstock_bfd_session_up", "1 while the BFD session is up");
    MetricFamily down = counter("penstock_bfd_session_downs_total", "times that the BFD session went down");
    MetricFamily withheld =
        counter("penstock_bfd_packets_withheld_total",
                "BFD packets that were due and not sent, because a worker or the control plane had stalled");
    for (const BfdReading::Session& session : bfd.sessions) {
        const Labels labels{{"peer", session.peer}, {"twin", session.twin}};
        add(up, labels, session.is_up ? 1 : 0);
        add(down, labels, static_cast<double>(session.times_down));
        add(withheld, labels, static_cast<double>(session.withheld));
    }
    for (MetricFamily* family : {&up, &down, &withheld}) {
        out.push_back(std::move(*family));
    }
}

}  // namespace penstock::metrics
