// SPDX-License-Identifier: Apache-2.0
// The thread that reports penstock-sync to its service manager: ready once the pages and sockets are served,
// alive while every thread has its rounds (the rule of /healthz). A missing API server does not delay the
// start, because the gateways keep their state without one.
#pragma once

#include <string>
#include <thread>

#include "control/process/service_manager.hpp"
#include "control/process/service_reports.hpp"
#include "control/sync/status.hpp"

namespace penstock::sync {

// What is reported about one reading. Pure.
[[nodiscard]] process::ServiceReports::Facts service_facts(const SyncReading& reading);

class ServiceWatch {
 public:
    // Objects that `read` uses must outlive this object.
    ServiceWatch(const process::ServiceManager& manager, ReadSync read);

 private:
    void run(const std::stop_token& stopped);

    const process::ServiceManager manager_;
    const ReadSync read_;
    std::jthread thread_;
};

}  // namespace penstock::sync
