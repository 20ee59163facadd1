// SPDX-License-Identifier: Apache-2.0
// annotations-page: prints docs/annotations.md.
#include <iostream>

#include "control/annotations/page.hpp"

int main() {
    std::cout << penstock::annotations::page_text();
    return std::cout.flush() ? 0 : 1;
}
