// SPDX-License-Identifier: Apache-2.0
// Watches the file of --external-ip-policy and reports its content each time it changes. A missing or invalid
// file changes nothing: the granted external IPs stay granted, and the mistake is logged once. Has its own
// thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "control/base/file_follower.hpp"
#include "control/sync/external_ip_policy.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

class PolicyWatch {
 public:
    // `known` is the last content of the file. `on_change` is called from start() and then from the thread.
    static Result<std::unique_ptr<PolicyWatch>> start(std::filesystem::path file, ExternalIpPolicy known,
                                                      std::function<void(const ExternalIpPolicy&)> on_change);

    // Makes the thread read the file now and log the result even if nothing changed. Any thread; does not
    // block.
    void reload() { follower_->reload(); }

 private:
    PolicyWatch(std::filesystem::path file, ExternalIpPolicy known,
                std::function<void(const ExternalIpPolicy&)> on_change)
        : file_(std::move(file)), known_(std::move(known)), on_change_(std::move(on_change)) {}
    void look(FileFollower::Report report);

    const std::filesystem::path file_;
    ExternalIpPolicy known_;
    std::string mistake_;  // last reported mistake; "" if the file is valid
    const std::function<void(const ExternalIpPolicy&)> on_change_;
    std::unique_ptr<FileFollower> follower_;  // last: its thread uses all members above
};

}  // namespace penstock::sync
