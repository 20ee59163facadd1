// A folder of Kubernetes YAML as a source of objects: what each file last said, put together, with the last good version of whatever is
// broken now. One thread.
//
// What an operator may rely on:
//   - a document that is gone, or whose file is gone, is an object withdrawn;
//   - a document that is broken keeps its last good version (GEN-003); where it cannot even be told which object it is, everything that
//     its file defined and that is not defined elsewhere now is kept;
//   - a folder (or single file) that is gone or unreadable is a lost source, not an empty one: everything is kept. So is a folder without
//     a single manifest, which a volume that is not mounted looks like, unless the operator says that it may be empty;
//   - a Service without a creationTimestamp gets the time at which it was first read: a newcomer does not take an address from a Service
//     that was there before (SVC-018). All that the first reading finds is equally old, and the name decides;
//   - of two definitions of one object the first in the order of file names counts, and the other is reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/manifest/decode.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::manifest {

// Files of one folder: stops a mistaken --manifests / from being read for an hour.
inline constexpr size_t kFilesMax = 10'000;

class Folder {
 public:
    enum class WhenEmpty : uint8_t { Keep, Withdraw };
    using Clock = std::chrono::system_clock;

    // `path` is a folder, whose *.yaml, *.yml and *.json count (not those of subfolders, not hidden ones), or one file. It need not exist
    // yet.
    explicit Folder(std::filesystem::path path, WhenEmpty when_empty = WhenEmpty::Keep)
        : path_(std::move(path)), when_empty_(when_empty) {}

    struct Contents {
        // Null until the path could be read for the first time: nothing is known then, which is not the same as nothing (GEN-012). The same
        // pointer as before where no object changed.
        std::shared_ptr<const kube::ObjectSet> objects;
        std::vector<Problem> problems;  // in the order of files and lines
        // Why the path as a whole could not be read, so that all objects are as they were; "" where it was.
        std::string lost;
        std::map<ObjectKind, size_t>
            quarantined;  // objects whose present version is not understood (GEN-003)
    };

    // Reads what changed since the last call. Files named in `unfinished` are being written at this moment and stay as they were. `now` is
    // the age of Services that are new.
    const Contents& load(const std::set<std::string>& unfinished = {}, Clock::time_point now = Clock::now());

 private:
    // Tells one version of a file from another without reading it.
    struct Stamp {
        uint64_t device = 0;
        uint64_t inode = 0;
        uint64_t size = 0;
        int64_t changed_ns = 0;  // ctime: unlike mtime nobody can set it back
        bool operator==(const Stamp&) const = default;
    };
    struct File {
        Stamp stamp;
        bool settled =
            false;  // the stamp was old when the file was read, so that a later change must show in it
        DecodedFile decoded;
    };
    struct Held {
        Object object;
        std::string file;        // that defined it last
        std::string first_read;  // RFC 3339; of a Service
    };
    struct Claim {
        std::string file;
        uint32_t line = 0;
    };

    Result<std::vector<std::filesystem::path>> list_files() const;
    void read(const std::filesystem::path& file, File& into) const;
    const Contents& keep(const std::string& why);
    void combine();
    [[nodiscard]] std::string first_read_of(const ObjectId& id) const;

    std::filesystem::path path_;
    WhenEmpty when_empty_;
    Clock::time_point
        newest_{};  // of the times that were given out; later readings give later ones, whatever the clock does
    std::string age_;                    // of what this reading finds first
    std::map<std::string, File> files_;  // by name: the order that decides between two definitions
    std::map<ObjectId, Held> held_;      // what `contents_` was made of
    Contents contents_;
};

}  // namespace penstock::manifest
