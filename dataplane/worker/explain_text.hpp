// SPDX-License-Identifier: Apache-2.0
// Findings of `explain` as text: the decisions are in explain.cpp.
#pragma once

#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/opening/admit.hpp"
#include "dataplane/worker/snat_forecast.hpp"

namespace penstock::worker {

// "192.0.2.1:80", "[2001:db8::1]:80"
[[nodiscard]] std::string socket_text(const IpAddr& address, L4Port port);

// The frontend of a packet of this key. Null: there is none, and the text names the owner of the address.
[[nodiscard]] std::string service_text(const config::Snapshot& snapshot, const packet::FlowKey& key,
                                       const lb::FrontendRow* frontend);

// The reason for which admit() drops a packet from `source` on `port` with ReversePath.
[[nodiscard]] std::string reverse_path_text(const config::Snapshot& snapshot, const IpAddr& source,
                                            NicPortId port);

// The answer to a packet that admit() rejects, and the reason.
[[nodiscard]] std::string rejection_text(const config::Snapshot& snapshot, const packet::FlowKey& key,
                                         const pipeline::Admission& admission);

// Describes how the SNAT port is selected, by the rule of its replies or null.
[[nodiscard]] std::string selection_text(const nat::ReplyRule* rule, WorkerId owner);

// The connection that a packet belongs to, or takes over.
[[nodiscard]] std::string connection_text(const KnownConnection& known, const CoarseClock& clock,
                                          CoarseTime now);

// A SNAT address that a flow of a frontend with this `group` (nat::SnatAddress::group) gets, with the share
// of the group, or the reason why it is not an address of that share.
[[nodiscard]] std::string snat_address_text(const nat::SnatAddress& address, uint8_t group);

// A port that a new flow would get by reclaiming (pipeline/opening/reclaim.hpp).
[[nodiscard]] std::string reclaim_text(const SnatForecast::PortUse& use);

}  // namespace penstock::worker
