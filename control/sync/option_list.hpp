// SPDX-License-Identifier: Apache-2.0
// The list of penstock-sync's options: names, forms, descriptions for --help, and the variables that the
// values are stored in. Rules that concern several options are in options.cpp.
#pragma once

#include "control/options/option_set.hpp"
#include "control/sync/options.hpp"

namespace penstock::sync {

// Adds all options. `set` stores into `options`, which must outlive it.
void add_options(options::OptionSet& set, Options& options);

// The lines of --help above the list.
extern const char* const kHelpHead;

}  // namespace penstock::sync
