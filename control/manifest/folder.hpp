// SPDX-License-Identifier: Apache-2.0
// A folder of Kubernetes YAML as a source of objects: the current contents of all files, combined, with the
// last good version of every object that is invalid now. One thread.
//
// Guarantees for operators:
//   - If a document, or its file, is removed, its object is withdrawn.
//   - If a document is invalid, its last good version stays (GEN-003). If its object cannot be identified,
//     everything that its file defined before, and that no other file defines now, stays.
//   - If the folder (or single file) is gone or unreadable, the source is lost, not empty: everything stays.
//     The same applies to a folder without any manifest, because an unmounted volume looks like that, unless
//     the operator permits an empty folder.
//   - A Service without a creationTimestamp gets the time at which it was first read: a newer Service does
//     not take an address from an older one (SVC-018). All Services of the first reading are equally old, and
//     the name decides.
//   - Of two definitions of one object, the first in the order of file names is used, and the other is
//     reported.
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

// Maximum number of manifests in one folder: prevents a mistaken `--manifests /` from reading for an hour.
inline constexpr size_t kFilesMax = 10'000;

class Folder {
 public:
    enum class WhenEmpty : uint8_t { Keep, Withdraw };
    // The kinds that are read; documents of other kinds are ignored. AddressPools have a path of their own,
    // so that a mistake in a Service's file never keeps pools from being read, and the reverse.
    enum class Kinds : uint8_t { Cluster, AddressPools };
    using Clock = std::chrono::system_clock;

    // `path` is one file or a folder, of which *.yaml, *.yml and *.json are read (not in subfolders, not
    // hidden ones). It need not exist yet.
    explicit Folder(std::filesystem::path path, WhenEmpty when_empty = WhenEmpty::Keep,
                    Kinds kinds = Kinds::Cluster)
        : path_(std::move(path)), when_empty_(when_empty), kinds_(kinds) {}

    struct Contents {
        // Null until the path was readable for the first time: the state is then unknown, not empty
        // (GEN-012). The same pointer as before if no object changed.
        std::shared_ptr<const kube::ObjectSet> objects;
        std::vector<Problem> problems;  // in the order of files and lines
        // Reason why the path as a whole was not readable, so that all objects were kept; "" if it was
        // readable.
        std::string lost;
        std::map<ObjectKind, size_t> quarantined;  // objects whose current version is invalid (GEN-003)
    };

    // Reads the files that changed since the last call. Files named in `unfinished` are being written now and
    // keep their state. `now` is the age of new Services.
    const Contents& load(const std::set<std::string>& unfinished = {}, Clock::time_point now = Clock::now());

 private:
    // Distinguishes versions of a file without reading it.
    struct Stamp {
        uint64_t device = 0;
        uint64_t inode = 0;
        uint64_t size = 0;
        int64_t changed_ns = 0;  // ctime: unlike mtime it cannot be set back
        bool operator==(const Stamp&) const = default;
    };
    struct File {
        Stamp stamp;
        // True if the stamp was old enough when the file was read, so that any later change alters it.
        bool settled = false;
        DecodedFile decoded;
    };
    struct Held {
        Object object;
        std::string file;        // latest defining file
        std::string first_read;  // RFC 3339; of a Service
    };
    struct Definition {
        std::string file;
        uint32_t line = 0;
    };

    Result<std::vector<std::filesystem::path>> list_files() const;
    void read(const std::filesystem::path& file, File& into) const;
    const Contents& keep(const std::string& why);
    void combine();
    [[nodiscard]] std::string first_read_of(const ObjectId& id) const;
    [[nodiscard]] bool is_read(ObjectKind kind) const noexcept {
        return (kind == ObjectKind::AddressPool) == (kinds_ == Kinds::AddressPools);
    }

    std::filesystem::path path_;
    WhenEmpty when_empty_;
    Kinds kinds_;
    // Newest time given out; later readings give later times, even if the clock is set back.
    Clock::time_point newest_{};
    std::string age_;                    // for objects first found by this reading
    std::map<std::string, File> files_;  // by name: the order that decides between two definitions
    std::map<ObjectId, Held> held_;      // contents of `contents_`
    Contents contents_;
};

}  // namespace penstock::manifest
