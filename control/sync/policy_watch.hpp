// Follows the file of --external-ip-policy: each time it says something new, whoever asked is told. A file that is gone or has a mistake
// changes nothing: what was granted stays granted, and the log says why, once for each mistake. A thread of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "control/manifest/watch.hpp"
#include "control/sync/external_ip_policy.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

class PolicyWatch {
 public:
    // `known` is what the file said last; `tell` is called from the thread.
    static Result<std::unique_ptr<PolicyWatch>> start(std::filesystem::path file, ExternalIpPolicy known,
                                                      std::function<void(const ExternalIpPolicy&)> tell);
    ~PolicyWatch();
    PolicyWatch(const PolicyWatch&) = delete;
    PolicyWatch& operator=(const PolicyWatch&) = delete;

 private:
    PolicyWatch(std::filesystem::path file, manifest::Watch watch, int stop_descriptor, ExternalIpPolicy known,
                std::function<void(const ExternalIpPolicy&)> tell);
    void run();
    void look();

    const std::filesystem::path file_;
    manifest::Watch watch_;
    const int stop_descriptor_;
    ExternalIpPolicy known_;
    std::string mistake_;  // told last; "" where the file was well
    const std::function<void(const ExternalIpPolicy&)> tell_;
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
