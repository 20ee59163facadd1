// SPDX-License-Identifier: Apache-2.0
#include "control/pcapng/comment.hpp"

namespace penstock::capture {

std::string comment_of(const Record& record, const Names& names) {
    const Finding& finding = record.finding;
    std::string text;
    const auto add = [&text](const char* name, const std::string& value) {
        if (!value.empty()) {
            text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
        }
    };
    add("verdict", to_string(finding.verdict));
    if (finding.verdict == Verdict::Drop) {
        add("reason", std::string(text_of(finding.reason).counter));
    }
    if (finding.worker.is_set()) {
        add("worker", std::to_string(finding.worker.value));
    }
    if (finding.receiver != finding.worker && finding.receiver.is_set()) {
        add("receiver", std::to_string(finding.receiver.value));
    }
    if (finding.from_host) {
        add("from", "linux");
    }
    if (record.port.is_set()) {
        add("port", names.port(record.port));
    }
    if (finding.connection.index.is_set()) {
        add("connection", std::to_string(finding.worker.value) + "-" +
                              std::to_string(finding.connection.index.value) + "-" +
                              std::to_string(finding.connection.life));
    }
    if (finding.service.is_set()) {
        add("service", names.service(finding.service));
    }
    if (finding.backend.is_set()) {
        add("backend", names.backend(finding.backend));
    }
    return text;
}

}  // namespace penstock::capture
