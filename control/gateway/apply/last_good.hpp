// SPDX-License-Identifier: Apache-2.0
// The last good configuration on disk: a restarted gateway forwards by it before any control plane connects
// (fail static). The file is always complete: it is written under another name, synced and renamed. A file
// that was damaged afterwards fails its SHA-256 check, is reported by name, and is not used.
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

// A complete state.
struct DesiredState {
    rpc::StateVersion version;
    DesiredServices services;
    model::Environment environment;
};

// Mode 0600, atomic, synced; a missing folder is created. Unavailable: the step that failed and the reason;
// the former file is unchanged.
[[nodiscard]] Status write_last_good(const std::string& path, const DesiredState& state);

struct LastGood {
    DesiredState state;
    // Service ports in the file that this program version does not accept (after a downgrade).
    std::vector<std::string> refused;
};
// Empty if there is no file. Corrupt: the file and its defect. Unavailable: the file cannot be read.
[[nodiscard]] Result<std::optional<LastGood>> read_last_good(const std::string& path);
// The same for the start of the gateway: the result, or why it is not usable, is logged. Empty: start
// without.
[[nodiscard]] std::optional<LastGood> load_last_good(const std::string& path);

}  // namespace penstock::gateway
