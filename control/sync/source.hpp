// SPDX-License-Identifier: Apache-2.0
// A source of objects, as used by the program's main loop: wait, take the changes, pass them on. All
// functions except status() are called by one thread, the source thread.
#pragma once

#include <optional>

#include "control/kube/changes.hpp"
#include "control/kube/source_status.hpp"

namespace penstock::sync {

class Source {
 public:
    virtual ~Source() = default;
    // Blocks until something may have changed since the last call; the first call does not block. False if
    // `stop_descriptor` is readable.
    [[nodiscard]] virtual bool wait(int stop_descriptor) = 0;
    // Changes not yet taken. nullopt: there are none, or not every collection has been listed once (GEN-012).
    // The first value holds all objects, possibly none.
    [[nodiscard]] virtual std::optional<kube::Changes> take_changes() = 0;
    // Any thread.
    [[nodiscard]] virtual kube::SourceStatus status() const = 0;
};

}  // namespace penstock::sync
