// Tells when a folder of manifests may have changed, by inotify: files written, moved, deleted, links swapped (the way ConfigMap volumes
// are updated: `..data` is renamed over), the folder itself replaced, or made only later. One thread.
//
//     ancestors ----------- only the next name on the way to PATH counts: it may appear, vanish, or be another link now
//     PATH, if a folder --- everything counts
//
// Changes are gathered until nothing has happened for a moment, so that a folder being copied is read once; a steady stream of them is cut
// into portions, so that a change is noticed within kGatherMax whatever else happens.
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
    // A file that was written to but not closed is not read, for this long: a truncated file is no statement.
    static constexpr milliseconds kUnfinishedMax{1'000};
    // Not every filesystem reports what happens on it (NFS): look again this often. Unchanged files cost one fstat each.
    static constexpr milliseconds kAuditPeriod{30'000};

    static Result<FileWatch> open(std::filesystem::path path);
    FileWatch(FileWatch&& other) noexcept;
    FileWatch& operator=(FileWatch&&) = delete;
    ~FileWatch();

    enum class Wake { MayHaveChanged, Stopped };
    // Blocks until the folder may have changed since the last call (or since open), or `stop_descriptor` is readable. Watches for what
    // happens from then on before it returns, so that a read which follows misses nothing.
    [[nodiscard]] Wake wait(int stop_descriptor);

    // Takes note of what has happened without waiting, so that unfinished() is up to date.
    void catch_up() { [[maybe_unused]] const bool noted = read_events(); }
    // Names of files that were written to and not closed yet.
    [[nodiscard]] std::set<std::string> unfinished() const;

 private:
    using Clock = std::chrono::steady_clock;

    FileWatch(int inotify, std::filesystem::path path) : inotify_(inotify), path_(std::move(path)) {}
    void rearm();
    void add(const std::filesystem::path& folder, const std::string& only_name,
             std::map<int, std::string>& into);
    // True where one of the events read concerns us.
    [[nodiscard]] bool read_events();
    void note(const std::string& name, unsigned mask);
    [[nodiscard]] milliseconds until_next_look(Clock::time_point now) const;

    int inotify_;
    std::filesystem::path path_;
    std::map<int, std::string> watched_;  // watch descriptor -> the only name that counts there; "": all
    std::map<std::string, Clock::time_point> being_written_;  // since
};

}  // namespace penstock
