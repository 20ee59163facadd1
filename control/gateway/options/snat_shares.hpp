// SPDX-License-Identifier: Apache-2.0
// Checks that every worker has SNAT ports. Workers own ports in blocks of 64 (nat/reply_owner.hpp), so a
// narrow --snat-ports can leave a worker without any. Each flow of that worker that needs a port would then
// be dropped as snat_ports_exhausted. Pure.
#pragma once

#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::gateway {

// InvalidArgument: a worker owns no port of `ports`. Otherwise returns a warning for the log if a worker's
// whole share lies in `host_ephemeral`: it has no port on addresses that the host uses too. "" if there is
// nothing to report.
[[nodiscard]] Result<std::string> check_snat_shares(nat::PortRange ports, nat::PortRange host_ephemeral,
                                                    unsigned workers);

// The same check if replies reach their owner by RSS (nat/reply_hash.hpp). A worker's ports then differ for
// each endpoint and are scattered over the range. Returns a warning if a narrow range can leave a worker
// without any port, otherwise "". `part`: All, or Heir for a gateway with a plan of shares.
[[nodiscard]] std::string remark_on_hashed_shares(const nat::ReplyHash& hash, NicPortId port,
                                                  nat::PortRange ports, unsigned workers,
                                                  nat::PortPart part = nat::PortPart::All);

// A warning for the log if a worker owns no port of `ports` that a gateway uses as the heir of a share, which
// is every eighth (nat::PortPart::Heir); "" if each worker owns one. For gateways with a plan of shares.
[[nodiscard]] std::string remark_on_heirs_ports(nat::PortRange ports, unsigned workers);

}  // namespace penstock::gateway
