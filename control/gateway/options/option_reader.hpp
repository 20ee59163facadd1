// SPDX-License-Identifier: Apache-2.0
// Converts the values of penstockd's options, as Boost stored them, into Options. The rules about values
// and their combinations are here, except those of types with a parser of their own (PortOption,
// ListenAddress, CPU lists, HTTP addresses, log settings). Reads the host's name if --gateway-name is
// absent; otherwise pure.
#pragma once

#include <boost/program_options/variables_map.hpp>

#include "control/gateway/options/options.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// InvalidArgument: the first error, which names the option.
[[nodiscard]] Result<Options> read_options(const boost::program_options::variables_map& values);

}  // namespace penstock::gateway
