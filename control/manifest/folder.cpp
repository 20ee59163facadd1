// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <system_error>
#include <tuple>

namespace penstock::manifest {
namespace fs = std::filesystem;
namespace {

bool is_manifest_name(const fs::path& file) {
    const std::string name = file.filename().string();
    const std::string extension = file.extension().string();
    return !name.starts_with('.') && (extension == ".yaml" || extension == ".yml" || extension == ".json");
}

// The text of a file, at most one byte more than `bytes_max`, so that decode() detects the excess.
Result<std::string> read_text(int descriptor, size_t bytes_max) {
    std::string text;
    char buffer[65'536];
    while (text.size() <= bytes_max) {
        const ssize_t got = ::read(descriptor, buffer, std::min(sizeof buffer, bytes_max + 1 - text.size()));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(Errc::Unavailable, std::strerror(errno));
        }
        if (got == 0) {
            break;
        }
        text.append(buffer, static_cast<size_t>(got));
    }
    return text;
}

int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// RFC 3339 with microseconds, UTC.
std::string time_text(Folder::Clock::time_point time) {
    const auto since_epoch = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
    const std::time_t seconds = Folder::Clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[sizeof("2006-01-02T15:04:05")];
    const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    std::string fraction = std::to_string(since_epoch.count() % 1'000'000);
    fraction.insert(0, 6 - fraction.size(), '0');
    return std::string(text, length) + "." + fraction + "Z";
}

DecodedFile unreadable(const std::string& name, const std::string& why) {
    return {.objects = {},
            .problems = {{name, 0, "",
                          "cannot be read: " + why + "; the last good version of its objects stays in use"}},
            .has_unidentified = true};
}

}  // namespace

Result<std::vector<fs::path>> Folder::list_files() const {
    std::error_code error;
    const auto kind = fs::status(path_, error).type();
    if (kind == fs::file_type::not_found) {
        return fail(Errc::NotFound, "does not exist");
    }
    if (kind == fs::file_type::regular) {
        return std::vector{path_};
    }
    std::vector<fs::path> files;
    for (auto entry = fs::directory_iterator(path_, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        std::error_code ignored;  // deleted meanwhile, or a dangling link: not a manifest
        if (is_manifest_name(entry->path()) && entry->is_regular_file(ignored)) {
            files.push_back(entry->path());
        }
        if (files.size() > kFilesMax) {
            return fail(Errc::Exhausted, "contains more than " + std::to_string(kFilesMax) + " manifests");
        }
    }
    if (error) {
        return fail(Errc::Unavailable, error.message());
    }
    return files;
}

void Folder::read(const fs::path& path, File& into) const {
    // A file that changes within this time after it was read may keep the same stamp: the kernel updates time
    // stamps with its tick, of at most 10 ms.
    constexpr int64_t kStampStepNs = 20'000'000;
    const std::string name = path.filename().string();
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        into = {.decoded = unreadable(name, std::strerror(errno))};
        return;
    }
    struct stat status{};
    ::fstat(descriptor, &status);
    const Stamp stamp{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
                      int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
    if (!into.settled || into.stamp != stamp) {
        const bool settled = now_ns() - stamp.changed_ns > kStampStepNs;
        const auto text = read_text(descriptor, DecodeLimits{}.file_bytes_max);
        into = {.stamp = stamp,
                .settled = settled && text,
                .decoded = text ? decode(*text, name) : unreadable(name, text.error().what)};
    }
    ::close(descriptor);
}

const Folder::Contents& Folder::keep(const std::string& why) {
    contents_.lost = why + (contents_.objects               ? "; the objects read before stay in use"
                            : kinds_ == Kinds::AddressPools ? "; no address pool is known"
                                                            : "; gateways keep their state");
    contents_.problems = {{.file = path_.string(), .rule = contents_.lost}};
    return contents_;
}

const Folder::Contents& Folder::load(const std::set<std::string>& unfinished, Clock::time_point now) {
    const auto listed = list_files();
    if (!listed) {
        return keep(listed.error().what);
    }
    if (listed->empty() && when_empty_ == WhenEmpty::Keep && (!contents_.objects || !held_.empty())) {
        return keep(
            "contains no manifest (volume not mounted? to withdraw everything, pass --allow-empty-folder)");
    }
    contents_.lost.clear();
    newest_ = std::max(now, newest_ + std::chrono::microseconds(1));
    age_ = time_text(newest_);
    std::map<std::string, File> files;
    for (const fs::path& path : *listed) {
        const std::string name = path.filename().string();
        const auto known = files_.find(name);
        File& file = files[name];
        if (known != files_.end()) {
            file = std::move(known->second);
        }
        if (known == files_.end() || !unfinished.contains(name)) {
            read(path, file);
        }
    }
    files_ = std::move(files);
    combine();
    return contents_;
}

std::string Folder::first_read_of(const ObjectId& id) const {
    const auto known = held_.find(id);
    return known == held_.end() ? age_ : known->second.first_read;
}

void Folder::combine() {
    contents_.quarantined.clear();
    std::vector<Problem> problems;
    std::map<ObjectId, Definition> definitions;
    std::map<ObjectId, Held> next;
    for (const auto& [name, file] : files_) {
        std::ranges::copy_if(
            file.decoded.problems, std::back_inserter(problems),
            [this](const Problem& problem) { return !problem.kind || is_read(*problem.kind); });
        for (const DecodedObject& found : file.decoded.objects) {
            if (!is_read(found.id.kind)) {
                if (found.id.kind == ObjectKind::AddressPool) {
                    problems.push_back({.file = name,
                                        .line = found.line,
                                        .object = found.id.to_string(),
                                        .rule = "is ignored here: pools are read from --address-pools",
                                        .severity = Problem::Severity::Warning,
                                        .kind = found.id.kind});
                }
                continue;
            }
            const auto [definition, first] = definitions.try_emplace(found.id, Definition{name, found.line});
            if (!first) {
                problems.push_back({name, found.line, found.id.to_string(),
                                    "defined twice; the definition at " + definition->second.file + ":" +
                                        std::to_string(definition->second.line) + " is used"});
            } else if (found.object) {
                next.emplace(found.id, Held{*found.object, name, first_read_of(found.id)});
            } else {
                ++contents_.quarantined[found.id.kind];
                if (const auto last_good = held_.find(found.id); last_good != held_.end()) {
                    next.emplace(found.id,
                                 Held{last_good->second.object, name, last_good->second.first_read});
                }
            }
        }
    }
    for (const auto& [id, last_good] : held_) {
        const auto file = files_.find(last_good.file);
        if (file != files_.end() && file->second.decoded.has_unidentified && !definitions.contains(id)) {
            ++contents_.quarantined[id.kind];
            next.emplace(id, last_good);
        }
    }
    held_ = std::move(next);
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
        return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    contents_.problems = std::move(problems);

    auto objects = std::make_shared<kube::ObjectSet>();
    for (const auto& [id, held] : held_) {
        if (const auto* service = std::get_if<kube::Service>(&held.object)) {
            kube::Service& known = objects->services.emplace(id.name, *service).first->second;
            if (known.meta.creation_timestamp.empty()) {
                known.meta.creation_timestamp = held.first_read;
            }
        } else if (const auto* slice = std::get_if<kube::EndpointSlice>(&held.object)) {
            objects->slices.emplace(id.name, *slice);
        } else if (const auto* node = std::get_if<kube::Node>(&held.object)) {
            objects->nodes.emplace(id.name.name, *node);
        } else if (const auto* pool = std::get_if<kube::AddressPool>(&held.object)) {
            objects->pools.emplace(id.name.name, *pool);
        } else if (const auto* space = std::get_if<kube::Namespace>(&held.object)) {
            objects->namespaces.emplace(id.name.name, *space);
        }
    }
    if (!contents_.objects || *contents_.objects != *objects) {
        contents_.objects = std::move(objects);
    }
}

}  // namespace penstock::manifest
