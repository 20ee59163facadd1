// SPDX-License-Identifier: Apache-2.0
// The list of penstockd's options: names, forms, descriptions for --help, and the variables that the values
// are stored in. Rules that concern several options are in options.cpp.
#pragma once

#include "control/gateway/options/options.hpp"
#include "control/options/option_set.hpp"

namespace penstock::gateway {

// Values that options.cpp completes or converts.
struct RawOptions {
    std::vector<std::string> labels;  // KEY=VALUE
    std::string healthz;              // "": by mode
    config::ReversePath reverse_path = config::ReversePath::Feasible;
};

// Adds all options. `set` stores into `options` and `raw`, which must outlive it.
void add_options(options::OptionSet& set, Options& options, RawOptions& raw);

// The lines of --help above and below the list.
extern const char* const kHelpHead;
extern const char* const kHelpExamples;

}  // namespace penstock::gateway
