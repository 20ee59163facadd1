// A folder of Kubernetes YAML as a source of objects: what each file last said, put together, with the last good version of whatever is
// broken now. One thread.
//
// What an operator may rely on:
//   - a document that is gone, or whose file is gone, is an object withdrawn;
//   - a document that is broken keeps its last good version (GEN-003); where it cannot even be told which object it is, everything that
//     its file defined and that is not defined elsewhere now is kept;
//   - a folder (or single file) that is gone or unreadable is a lost source, not an empty one: everything is kept;
//   - of two definitions of one object the first in the order of file names counts, and the other is reported.
#pragma once

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
    // `path` is a folder, whose *.yaml, *.yml and *.json count (not those of subfolders, not hidden ones), or one file. It need not exist
    // yet.
    explicit Folder(std::filesystem::path path) : path_(std::move(path)) {}

    struct Contents {
        // Null until the path could be read for the first time: nothing is known then, which is not the same as nothing (GEN-012). The same
        // pointer as before where no object changed.
        std::shared_ptr<const kube::ObjectSet> objects;
        std::vector<Problem> problems;  // in the order of files and lines
    };

    // Reads what changed since the last call. Files named in `unfinished` are being written at this moment and stay as they were.
    const Contents& load(const std::set<std::string>& unfinished = {});

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
        bool settled = false;  // the stamp was old when the file was read, so that a later change must show in it
        DecodedFile decoded;
    };
    struct Held {
        Object object;
        std::string file;  // that defined it last
    };
    struct Claim {
        std::string file;
        uint32_t line = 0;
    };

    Result<std::vector<std::filesystem::path>> list_files() const;
    void read(const std::filesystem::path& file, File& into) const;
    void combine();

    std::filesystem::path path_;
    std::map<std::string, File> files_;  // by name: the order that decides between two definitions
    std::map<ObjectId, Held> held_;      // what `contents_` was made of
    Contents contents_;
};

}  // namespace penstock::manifest
