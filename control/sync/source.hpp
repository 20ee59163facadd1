// Where objects come from, as the program's main loop sees it: it waits, takes what changed, and hands it on. One thread, the source
// thread, but for status().
#pragma once

#include <optional>

#include "control/kube/changes.hpp"
#include "control/kube/source_status.hpp"

namespace penstock::sync {

class Source {
 public:
    virtual ~Source() = default;
    // Blocks until something may have changed since the last call; the first one does not. False where `stop_descriptor` is readable.
    [[nodiscard]] virtual bool wait(int stop_descriptor) = 0;
    // What the readers do not know yet. nullopt: nothing, or not everything has been heard once (GEN-012). The first value is all there is,
    // be it nothing.
    [[nodiscard]] virtual std::optional<kube::Changes> take_changes() = 0;
    // Any thread.
    [[nodiscard]] virtual kube::SourceStatus status() const = 0;
};

}  // namespace penstock::sync
