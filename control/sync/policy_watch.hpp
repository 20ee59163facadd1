// Follows the file of --external-ip-policy: each time it says something new, whoever asked is told. A file that is gone or has a mistake
// changes nothing: what was granted stays granted, and the log says why, once for each mistake. A thread of its own.
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
    // `known` is what the file said last; `tell` is called from the thread.
    static Result<std::unique_ptr<PolicyWatch>> start(std::filesystem::path file, ExternalIpPolicy known,
                                                      std::function<void(const ExternalIpPolicy&)> tell);
    ~PolicyWatch();
    PolicyWatch(const PolicyWatch&) = delete;
    PolicyWatch& operator=(const PolicyWatch&) = delete;

    // Has the thread read the file now, and log the result even if nothing changed. Any thread; does not block.
    void reload();

 private:
    PolicyWatch(std::filesystem::path file, FileWatch watch, int wake_descriptor, ExternalIpPolicy known,
                std::function<void(const ExternalIpPolicy&)> tell);
    void run();
    enum class Report { Changes, Always };
    void look(Report report);
    void wake() const;

    const std::filesystem::path file_;
    FileWatch watch_;
    const int wake_descriptor_;
    ExternalIpPolicy known_;
    std::string mistake_;  // told last; "" where the file was well
    const std::function<void(const ExternalIpPolicy&)> tell_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
