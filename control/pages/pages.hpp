// SPDX-License-Identifier: Apache-2.0
// Texts that are generated from the lists of options and commands: manual pages, and INI files with every
// option commented out. Pure.
#pragma once

#include <string>
#include <vector>

namespace penstock::pages {

struct Page {
    std::string file;  // "penstockd.8", "penstock-sync.ini", "penstockctl.zsh"
    std::string text;
};

// All pages. `date`: of the manual pages, as YYYY-MM-DD.
[[nodiscard]] std::vector<Page> all_pages(const std::string& version, const std::string& date);

}  // namespace penstock::pages
