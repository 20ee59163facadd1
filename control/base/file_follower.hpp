// SPDX-License-Identifier: Apache-2.0
// A thread that reads a file again whenever it may have changed.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "control/base/file_watch.hpp"
#include "dataplane/base/result.hpp"

namespace penstock {

class FileFollower {
 public:
    // Changes: log only what is new. Always: log the result in any case.
    enum class Report : uint8_t { Changes, Always };
    // Reads the file. Called from start() and then on the thread, one call at a time. Not called while a
    // write is under way: a part of a file may parse as a complete one.
    using Look = std::function<void(Report)>;

    static Result<std::unique_ptr<FileFollower>> start(const std::filesystem::path& file, Look look);
    ~FileFollower();
    FileFollower(const FileFollower&) = delete;
    FileFollower& operator=(const FileFollower&) = delete;

    // Makes the thread read the file now, with Report::Always. Any thread; does not block.
    void reload();

 private:
    FileFollower(std::string name, Look look, FileWatch watch, int wake_descriptor);
    void run();
    void wake() const;

    const std::string name_;  // of the file in its folder
    const Look look_;
    FileWatch watch_;
    const int wake_descriptor_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all members above
};

}  // namespace penstock
