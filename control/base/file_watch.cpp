// SPDX-License-Identifier: Apache-2.0
#include "control/base/file_watch.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

namespace penstock {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kNamesChange =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
// IN_ATTRIB: a file made readable.
constexpr uint32_t kContentsChange = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB;
constexpr int kLinksMax = 40;  // as for the kernel (ELOOP)

}  // namespace

Result<FileWatch> FileWatch::open(fs::path path) {
    const int inotify = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify < 0) {
        return fail(Errc::Exhausted,
                    std::string("inotify: ") + std::strerror(errno) + " (see fs.inotify.max_user_instances)");
    }
    std::error_code error;
    fs::path absolute = fs::absolute(path, error).lexically_normal();
    if (!absolute.has_filename()) {
        absolute = absolute.parent_path();  // "manifests/"
    }
    FileWatch watch(inotify, std::move(absolute));
    watch.rearm();
    return watch;
}

FileWatch::FileWatch(FileWatch&& other) noexcept
    : inotify_(std::exchange(other.inotify_, -1)),
      path_(std::move(other.path_)),
      watched_(std::move(other.watched_)),
      being_written_(std::move(other.being_written_)) {}

FileWatch::~FileWatch() {
    if (inotify_ >= 0) {
        ::close(inotify_);
    }
}

void FileWatch::add(const fs::path& folder, const std::string& only_name, std::map<int, std::string>& into) {
    const uint32_t mask = IN_ONLYDIR | kNamesChange | kContentsChange;
    const int descriptor = ::inotify_add_watch(inotify_, folder.c_str(), mask);
    if (descriptor < 0) {
        return;  // missing, or not a folder: the watch on its parent reports a change
    }
    // One folder can be reached by two ways ("a/.." and links): then all its events count.
    const auto [entry, added] = into.try_emplace(descriptor, only_name);
    if (!added && entry->second != only_name) {
        entry->second.clear();
    }
}

// Outermost first: anything created meanwhile is either found by the next step or reported by the last watch.
void FileWatch::rearm() {
    std::map<int, std::string> watched;
    const auto watch_way = [&](const fs::path& path) {
        fs::path folder;
        for (const fs::path& name : path) {
            if (!folder.empty()) {
                add(folder, name.string(), watched);
            }
            folder /= name;
        }
    };
    watch_way(path_);
    std::error_code error;
    if (fs::is_directory(path_, error)) {
        add(path_, "", watched);
    } else {
        // One file, through links: each of them may be replaced, also one in its own folder.
        fs::path link = path_;
        for (int hops = 0; hops < kLinksMax && fs::is_symlink(link, error); ++hops) {
            link = (link.parent_path() / fs::read_symlink(link, error)).lexically_normal();
            watch_way(link);
        }
        if (const fs::path target = fs::weakly_canonical(path_, error); !error && target != path_) {
            add(target.parent_path(), target.filename().string(), watched);
        }
    }
    for (const auto& [descriptor, name] : watched_) {
        if (!watched.contains(descriptor)) {
            ::inotify_rm_watch(inotify_, descriptor);
        }
    }
    watched_ = std::move(watched);
}

bool FileWatch::read_events() {
    bool concerns_us = false;
    alignas(inotify_event) char buffer[16'384];
    for (;;) {
        const ssize_t got = ::read(inotify_, buffer, sizeof buffer);
        if (got <= 0) {
            return concerns_us;
        }
        for (ssize_t at = 0; at < got;) {
            inotify_event event{};
            std::memcpy(&event, buffer + at, sizeof event);
            const std::string name = event.len == 0 ? std::string() : std::string(buffer + at + sizeof event);
            at += static_cast<ssize_t>(sizeof event + event.len);
            const auto watched = watched_.find(event.wd);
            const bool lost_some = (event.mask & IN_Q_OVERFLOW) != 0;
            if (lost_some || (watched != watched_.end() &&
                              (watched->second.empty() || name.empty() || watched->second == name))) {
                concerns_us = true;
                note(name, event.mask);
            }
        }
    }
}

void FileWatch::note(const std::string& name, unsigned mask) {
    if ((mask & IN_MODIFY) != 0) {
        being_written_.try_emplace(name, Clock::now());
    } else if ((mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)) != 0) {
        being_written_.erase(name);
    }
}

std::set<std::string> FileWatch::unfinished() const {
    std::set<std::string> names;
    const auto now = Clock::now();
    for (const auto& [name, since] : being_written_) {
        if (now - since < kUnfinishedMax) {
            names.insert(name);
        }
    }
    return names;
}

// Time until the wait for an unfinished file ends, or until the next audit.
FileWatch::milliseconds FileWatch::until_next_look(Clock::time_point now) const {
    milliseconds wait = kAuditPeriod;
    for (const auto& [name, since] : being_written_) {
        const auto rest =
            std::chrono::duration_cast<milliseconds>(since + kUnfinishedMax - now) + milliseconds(1);
        if (rest > milliseconds(0)) {
            wait = std::min(wait, rest);
        }
    }
    return wait;
}

FileWatch::Wake FileWatch::wait(int stop_descriptor) {
    const auto give_up = Clock::now() + until_next_look(Clock::now());
    std::optional<Clock::time_point> first_change;
    for (;;) {
        const auto now = Clock::now();
        const auto deadline =
            first_change ? std::min(now + kGatherQuiet, *first_change + kGatherMax) : give_up;
        const auto rest = std::chrono::duration_cast<milliseconds>(deadline - now);
        pollfd poll_for[] = {{.fd = inotify_, .events = POLLIN, .revents = 0},
                             {.fd = stop_descriptor, .events = POLLIN, .revents = 0}};
        const int ready = ::poll(poll_for, 2, static_cast<int>(std::max(rest, milliseconds(0)).count()));
        if (ready > 0 && poll_for[1].revents != 0) {
            return Wake::Stopped;
        }
        if (ready > 0 && read_events()) {
            first_change = first_change.value_or(Clock::now());
        }
        if ((ready == 0 || Clock::now() >= deadline) && (first_change || Clock::now() >= give_up)) {
            rearm();
            return Wake::MayHaveChanged;
        }
    }
}

}  // namespace penstock
