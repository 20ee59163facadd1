// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/hash.hpp"

#include <sys/random.h>

#include "dataplane/base/check.hpp"

namespace penstock {

HashKey HashKey::random() {
    HashKey key;
    PENSTOCK_CHECK(getrandom(&key, sizeof key, 0) == static_cast<ssize_t>(sizeof key));
    return key;
}

}  // namespace penstock
