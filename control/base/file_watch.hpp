// SPDX-License-Identifier: Apache-2.0
// Detects possible changes of a folder, or of one file, by inotify: files written, moved, deleted, links
// swapped (the way ConfigMap volumes are updated: `..data` is renamed over), the path itself replaced or
// created later. One thread.
//
//   ancestors ----------- only the next name on the path to PATH counts: it may appear, vanish, or change
//   PATH, if a folder --- everything counts
//
// Changes are collected until there were none for a moment, so that a folder that is being copied is read
// once. A steady stream of changes is split into portions, so that every change is reported within
// kGatherMax.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock {

class FileWatch {
 public:
    using milliseconds = std::chrono::milliseconds;

    static constexpr milliseconds kGatherQuiet{10};
    static constexpr milliseconds kGatherMax{40};
    // Time for which a file that was written to but not closed is not read: a truncated file is not a valid
    // version.
    static constexpr milliseconds kUnfinishedMax{1'000};
    // Some filesystems (NFS) do not report all changes: check again this often. Unchanged files cost one
    // fstat each.
    static constexpr milliseconds kAuditPeriod{30'000};

    static Result<FileWatch> open(std::filesystem::path path);
    FileWatch(FileWatch&& other) noexcept;
    FileWatch& operator=(FileWatch&&) = delete;
    ~FileWatch();

    enum class Wake { MayHaveChanged, Stopped };
    // Blocks until the folder may have changed since the last call (or since open), or `stop_descriptor` is
    // readable. The watches for later changes are set before it returns, so that a subsequent read misses
    // nothing.
    [[nodiscard]] Wake wait(int stop_descriptor);

    // Processes pending events without waiting, so that unfinished() is up to date.
    void catch_up() { [[maybe_unused]] const bool noted = read_events(); }
    // Names of files that were written to and not closed yet.
    [[nodiscard]] std::set<std::string> unfinished() const;

 private:
    using Clock = std::chrono::steady_clock;

    FileWatch(int inotify, std::filesystem::path path) : inotify_(inotify), path_(std::move(path)) {}
    void rearm();
    void add(const std::filesystem::path& folder, const std::string& only_name,
             std::map<int, std::string>& into);
    // True if one of the events is relevant.
    [[nodiscard]] bool read_events();
    void note(const std::string& name, unsigned mask);
    [[nodiscard]] milliseconds until_next_look(Clock::time_point now) const;

    int inotify_;
    std::filesystem::path path_;
    std::map<int, std::string> watched_;  // watch descriptor -> the only relevant name there; "": all
    std::map<std::string, Clock::time_point> being_written_;  // start of writing
};

}  // namespace penstock
