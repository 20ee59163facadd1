// SPDX-License-Identifier: Apache-2.0
// Watches the file of --external-ip-policy and reports its content each time it changes. A missing or invalid
// file changes nothing: the granted external IPs stay granted, and the mistake is logged once. Has its own
// thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "control/base/file_watch.hpp"
#include "control/sync/external_ip_policy.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

class PolicyWatch {
 public:
    // `known` is the last content of the file. `on_change` is called from the thread.
    static Result<std::unique_ptr<PolicyWatch>> start(std::filesystem::path file, ExternalIpPolicy known,
                                                      std::function<void(const ExternalIpPolicy&)> on_change);
    ~PolicyWatch();
    PolicyWatch(const PolicyWatch&) = delete;
    PolicyWatch& operator=(const PolicyWatch&) = delete;

    // Makes the thread read the file now and log the result even if nothing changed. Any thread; does not
    // block.
    void reload();

 private:
    PolicyWatch(std::filesystem::path file, FileWatch watch, int wake_descriptor, ExternalIpPolicy known,
                std::function<void(const ExternalIpPolicy&)> on_change);
    void run();
    enum class Report { Changes, Always };
    void look(Report report);
    void wake() const;

    const std::filesystem::path file_;
    FileWatch watch_;
    const int wake_descriptor_;
    ExternalIpPolicy known_;
    std::string mistake_;  // last reported mistake; "" if the file is valid
    const std::function<void(const ExternalIpPolicy&)> on_change_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
