// SPDX-License-Identifier: Apache-2.0
// One command at several gateways (--all-gateways): all are queried at once, and the answers are combined in
// the order of the context file. A gateway that fails does not hide the others.
//
//   table        one table, with the first column GATEWAY
//   other text   below each other, each under a line "== NAME =="
//   JSON, YAML   a list of {"gateway": NAME, "answer": ...} and {"gateway": NAME, "error": TEXT}
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/cli/commands/command.hpp"
#include "control/cli/gateway.hpp"
#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct Member {
    std::string name;
    Request request;
    Result<std::unique_ptr<Gateway>> gateway;
};

struct Report {
    std::string text;                 // for standard output
    std::vector<std::string> errors;  // "NAME: what failed", one for each gateway that failed or was judged
    int exit_code = 0;                // the highest of all gateways
};

// Blocks until each gateway has answered or its call has timed out. Calls each gateway from a thread of its
// own. `request`: format and header of the whole report.
[[nodiscard]] Report report_of_all(const Command& command, const Request& request,
                                   const std::vector<Member>& members);

}  // namespace penstock::cli
