// SPDX-License-Identifier: Apache-2.0
#include "control/flow_records/log_folder.hpp"

#include <algorithm>
#include <utility>

#include "control/flow_records/json_line.hpp"

namespace penstock::flow_records {

LogFolder::LogFolder(std::string folder, RotationLimits limits)
    : folder_(std::move(folder)), limits_(limits) {}

bool LogFolder::add(const Event& event, const Origin& origin) {
    auto found = files_.find(event.service.folder);
    if (found == files_.end()) {
        if (files_.size() == kFilesMax) {
            return false;
        }
        RotatedFile file(folder_ + "/" + event.service.folder + "/flows.jsonl", limits_);
        found = files_.emplace(event.service.folder, File{.file = std::move(file)}).first;
    }
    File& file = found->second;
    const uint32_t interval_s = event.service.interval_min * 60;
    file.interval_s = file.records == 0 ? interval_s : std::min(file.interval_s, interval_s);
    append_json_line(file.lines, event, origin);
    ++file.records;
    return true;
}

LogFolder::Written LogFolder::write(int64_t now_s) {
    Written written;
    for (auto& [folder, file] : files_) {
        if (file.records == 0) {
            continue;
        }
        const Status appended = file.file.append(file.lines, file.interval_s, now_s);
        (appended ? written.records : written.lost) += file.records;
        if (!appended && written.error.empty()) {
            written.error = appended.error().what;
        }
        file.lines.clear();
        file.records = 0;
    }
    return written;
}

void LogFolder::reopen() {
    for (auto& [folder, file] : files_) {
        file.file.reopen();
    }
}

}  // namespace penstock::flow_records
