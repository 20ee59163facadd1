// Whether every worker has SNAT ports. They belong to workers in blocks of 64 (nat/reply_owner.hpp), so a narrow --snat-ports can leave a
// worker without any, and each flow that needs one there would end in snat_ports_exhausted. Pure.
#pragma once

#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::gateway {

// InvalidArgument: a worker has no port of `ports` at all. Else a remark for the log where a worker has none on an address that the host
// uses too, because all of its share lies in `host_ephemeral`; "" where there is nothing to say.
[[nodiscard]] Result<std::string> check_snat_shares(nat::PortRange ports, nat::PortRange host_ephemeral,
                                                    unsigned workers);

// The same where replies come home by RSS (nat/reply_hash.hpp): then a worker's ports are others towards each endpoint, scattered over the
// range. A remark where a narrow one can leave a worker without any; "" where it cannot.
[[nodiscard]] std::string remark_on_hashed_shares(const nat::ReplyHash& hash, NicPortId port,
                                                  nat::PortRange ports, unsigned workers);

}  // namespace penstock::gateway
