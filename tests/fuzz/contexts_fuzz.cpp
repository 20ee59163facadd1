// SPDX-License-Identifier: Apache-2.0
// Any text as a context file of penstockctl. Reading terminates. It returns either contexts with distinct
// names and an address each, of which the default is one, or an error that names the file.
#include <set>
#include <string>

#include "control/cli/contexts.hpp"
#include "control/client/target.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto contexts = cli::parse_contexts(text, "/folder/contexts.ini");
    if (!contexts) {
        PENSTOCK_CHECK(contexts.error().code == Errc::InvalidArgument);
        PENSTOCK_CHECK(contexts.error().what.starts_with("/folder/contexts.ini: "));
        return 0;
    }
    std::set<std::string> names;
    for (const cli::Context& context : contexts->list) {
        PENSTOCK_CHECK(!context.name.empty() && names.insert(context.name).second);
        PENSTOCK_CHECK(client::parse_target(context.gateway.text).has_value());
        PENSTOCK_CHECK(!context.sync_server || context.sync_server->is_unix());
        for (const std::string* path : {&context.tls.certificate, &context.tls.key, &context.tls.authority}) {
            PENSTOCK_CHECK(path->empty() || path->starts_with('/'));
        }
    }
    PENSTOCK_CHECK(contexts->list.size() <= cli::kContextsMax);
    PENSTOCK_CHECK(contexts->chosen.empty() || names.contains(contexts->chosen));
    return 0;
}
