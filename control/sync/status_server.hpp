// SPDX-License-Identifier: Apache-2.0
// The status service of penstock-sync (penstock.v1.SyncStatus) on its Unix socket, used by `penstockctl get
// sync`, `get pools` and `get addresses`.
#pragma once

#include <memory>
#include <string>

#include "control/sync/status.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/sync.pb.h"

namespace penstock::sync {

[[nodiscard]] v1::Sync to_proto(const SyncReading& reading);

class StatusServer {
 public:
    // `path` is absolute. A lock file beside it excludes a second process (AlreadyExists). `group`:
    // additional group with access; "": only the process's own. Errors name the path.
    static Result<std::unique_ptr<StatusServer>> start(const std::string& path, const std::string& group,
                                                       ReadSync read);
    ~StatusServer();
    StatusServer(const StatusServer&) = delete;
    StatusServer& operator=(const StatusServer&) = delete;

 private:
    struct Impl;
    explicit StatusServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::sync
