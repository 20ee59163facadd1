// The last good configuration on disk: what a restarted gateway forwards by before anybody connects (fail static). A file that is there is
// whole: it is written beside its name, synced and renamed; a file that was damaged afterwards is found out by its SHA-256, named, and
// not used.
//
//   "PENSTKLG" | version u32 | length u64 | SHA-256 of all the rest (32 bytes) | penstock.v1.FullState
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/rpc/state_update.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// A state as a whole.
struct DesiredState {
    rpc::StateVersion version;
    DesiredServices services;
    model::Environment environment;
};

// Mode 0600, atomic, synced, folder made where it is missing. Unavailable: says at which step and why; the former file is still there.
[[nodiscard]] Status write_last_good(const std::string& path, const DesiredState& state);

struct LastGood {
    DesiredState state;
    std::vector<std::string>
        refused;  // service ports in the file that this version does not accept (after a downgrade)
};
// Empty where there is no file. Corrupt: which file and what is wrong with it. Unavailable: it cannot be read.
[[nodiscard]] Result<std::optional<LastGood>> read_last_good(const std::string& path);

}  // namespace penstock::gateway
