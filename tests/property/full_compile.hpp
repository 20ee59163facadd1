// SPDX-License-Identifier: Apache-2.0
// The simplest compiler: every run walks all service ports and builds the table anew. Only the state in force
// and the ids are kept between runs. Compiler must agree with it (compile_property_test.cpp).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "control/gateway/compile/compile.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

struct FullCompiled {
    std::shared_ptr<const lb::ServiceTable> table = std::make_shared<lb::ServiceTable>();
    std::map<model::ServiceKey, Programmed> services;
    std::map<model::ServiceKey, model::Refusal> refusals;
};

[[nodiscard]] Result<FullCompiled> full_compile(const CompileInput& input, const FullCompiled& previous,
                                                IdMap& ids);

}  // namespace penstock::gateway
