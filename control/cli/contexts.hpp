// SPDX-License-Identifier: Apache-2.0
// The context file of penstockctl: names for gateways, with the options that reach each of them. An INI file
// with a section for each context. Keys before the first section apply to every context without its own.
//
//   context = edge-1          # used without --context, --gateway and $PENSTOCK_GATEWAY
//   tls-ca = ca.pem           # relative paths begin at the folder of the file
//   tls-cert = admin.pem
//   tls-key = admin.key
//
//   [edge-1]
//   gateway = 192.0.2.1:9106
//
//   [edge-2]
//   gateway = 192.0.2.2:9106
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/client/target.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct Context {
    std::string name;
    client::Target gateway;
    std::optional<client::Target> sync_server;  // empty: the default of --sync-server
    client::TlsFiles tls;                       // "": the default of the option
};

struct Contexts {
    std::string file;
    std::vector<Context> list;  // in the order of the file
    std::string chosen;         // name of the context that is used by default; "": none
};

// Contexts, at most; the file is read at every start of penstockctl.
inline constexpr size_t kContextsMax = 1000;

// Parses the text of `file`. Every error is InvalidArgument, and names file, context and key.
[[nodiscard]] Result<Contexts> parse_contexts(const std::string& text, const std::string& file);

// InvalidArgument, with all names, if there is no context `name`. The pointer is into `contexts`.
[[nodiscard]] Result<const Context*> find_context(const Contexts& contexts, const std::string& name);

// The address of a penstock-sync: unix:PATH only.
[[nodiscard]] Result<client::Target> parse_sync_target(const std::string& text);

}  // namespace penstock::cli
