// SPDX-License-Identifier: Apache-2.0
// The files of flow records below one folder: FOLDER/SINK/PREFIX/flows.jsonl. Sink and prefix are those of
// the Service.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "control/flow_records/event.hpp"
#include "control/flow_records/rotated_file.hpp"

namespace penstock::flow_records {

class LogFolder {
 public:
    // Users of a cluster choose the names of files, so their number has a limit in one run of the process.
    static constexpr size_t kFilesMax = 256;

    LogFolder(std::string folder, RotationLimits limits);

    // Adds the record to the lines of its file. Returns false if that would be one file too many.
    [[nodiscard]] bool add(const Event& event, const Origin& origin);
    // Writes the lines that were added.
    struct Written {
        uint64_t records = 0;
        uint64_t lost = 0;
        std::string error;  // the first one; "": none
    };
    [[nodiscard]] Written write(int64_t now_s);
    // Opens all files anew.
    void reopen();

 private:
    struct File {
        RotatedFile file;
        std::string lines;
        uint64_t records = 0;     // in `lines`
        uint32_t interval_s = 0;  // the shortest one of the records in `lines`
    };
    const std::string folder_;
    const RotationLimits limits_;
    std::map<std::string, File, std::less<>> files_;  // by ServiceFacts::folder
};

}  // namespace penstock::flow_records
