// SPDX-License-Identifier: Apache-2.0
// Follows changes of the TLS files: reads them once a second, and keeps the last valid material. Runs its own
// thread. Files are replaced one after another, so an error is logged only if two consecutive reads find it;
// SIGHUP logs the result in any case.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "control/tls/expiry.hpp"
#include "control/tls/material.hpp"

namespace penstock::tls {

struct WatchOptions {
    Files files;
    OptionNames names;
    const char* logger = "rpc";
    // Called with each new material: the first one by the constructor, the others on the watch's thread.
    // Null: not called.
    std::function<void(const Material&)> on_change;
    std::chrono::milliseconds period{1'000};
};

class Watch {
 public:
    // Reads the files once before it returns. An invalid file is not an error here: see current() and
    // error().
    explicit Watch(WatchOptions options);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // The last valid material; null: none yet. Any thread.
    [[nodiscard]] std::shared_ptr<const Material> current() const;
    // The current error of the files; "": none. Any thread.
    [[nodiscard]] std::string error() const;
    // Makes the thread read the files now and log the result. Any thread; does not block.
    void reload();

 private:
    enum class Report { Changes, Always };
    void run(const std::stop_token& stopped);
    void look(Report report);
    void look_at_expiry();

    const WatchOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    std::shared_ptr<const Material> current_;  // guarded by mutex_, like the next two
    std::string error_;
    bool reload_ = false;
    // Used by the thread only.
    std::string logged_error_;
    ExpiryNotice certificate_expiry_, authority_expiry_;
    std::jthread thread_;  // last member: it uses all of the above
};

}  // namespace penstock::tls
