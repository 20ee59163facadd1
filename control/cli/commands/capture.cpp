// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>

#include "control/cli/capture_filter.hpp"
#include "control/cli/commands/list.hpp"
#include "control/cli/interrupt.hpp"
#include "control/cli/service_name.hpp"

namespace penstock::cli {
namespace {

// The file of --write. Opened with the first part, so that a refused capture leaves an existing file as it
// is. Packets may have secrets: only the user may read it.
class Output {
 public:
    explicit Output(std::string path) : path_(std::move(path)) {}

    Status write(std::string_view bytes) {
        if (fd_ < 0) {
            fd_ = path_ == "-" ? ::dup(STDOUT_FILENO)
                               : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
            if (fd_ < 0) {
                return failure("cannot open ");
            }
        }
        while (!bytes.empty()) {
            const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
            if (count < 0 && errno != EINTR) {
                return failure("cannot write to ");
            }
            bytes.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
        }
        return {};
    }
    ~Output() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

 private:
    [[nodiscard]] Status failure(const char* what) const {
        return fail(Errc::Exhausted, what + path_ + ": " + std::strerror(errno));
    }
    std::string path_;
    int fd_ = -1;
};

Result<v1::CaptureRequest> capture_request(Gateway& gateway, const Request& request) {
    v1::CaptureRequest wanted;
    std::string filter;
    for (const std::string& word : request.arguments) {
        filter += (filter.empty() ? "" : " ") + word;
    }
    PENSTOCK_TRY(const auto instructions, compile_filter(filter));
    for (const capture::Instruction& each : instructions) {
        v1::FilterInstruction& instruction = *wanted.add_filter();
        instruction.set_code(each.code);
        instruction.set_jump_true(each.jump_true);
        instruction.set_jump_false(each.jump_false);
        instruction.set_k(each.k);
    }
    wanted.set_filter_text(filter);
    wanted.set_form(request.form);
    if (!request.service.name.empty()) {
        PENSTOCK_TRY(const auto service, service_name_from(gateway, request, request.service));
        wanted.set_namespace_(service.namespace_name);
        wanted.set_name(service.name);
    } else if (!request.namespace_name.empty()) {
        return fail(Errc::InvalidArgument, "--namespace " + request.namespace_name +
                                               ": capture selects a Service: pass --service NAME too");
    }
    if (request.client.port() != 0) {
        return fail(Errc::InvalidArgument,
                    "--client: capture takes an address; put the port into the filter: port " +
                        std::to_string(request.client.port()));
    }
    wanted.set_client(request.client.address());
    for (const v1::CaptureRequest::Point point : request.points) {
        wanted.add_points(point);
    }
    wanted.set_records_max(request.records_max);
    wanted.set_seconds(request.capture_seconds);
    wanted.set_snap_bytes(request.snap_bytes);
    return wanted;
}

Result<int> perform_capture(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto wanted, capture_request(*gateway, request));
    if (request.capture_file.empty() && ::isatty(STDOUT_FILENO) == 1) {
        return fail(Errc::InvalidArgument,
                    "capture: standard output is a terminal: pass -w FILE, or pipe to tcpdump -r - or "
                    "tshark -r -");
    }
    Output output(request.capture_file.empty() ? "-" : request.capture_file);
    Status written;
    v1::CaptureChunk last;
    const Interrupt interrupt;
    PENSTOCK_TRY_STATUS(gateway->capture(wanted, interrupt.fd(), [&](const v1::CaptureChunk& chunk) {
        last = chunk;
        written = output.write(chunk.pcapng());
        return written.has_value();
    }));
    PENSTOCK_TRY_STATUS(written);
    std::cerr << last.records() << " records, " << last.lost()
              << " lost: " << (last.ended().empty() ? "interrupted" : last.ended()) << "\n";
    return EXIT_SUCCESS;
}

}  // namespace

Command capture_command() {
    constexpr size_t kWordsMax = 1'024;
    return {
        .words = {"capture"},
        .arguments = "[FILTER]",
        .arguments_max = kWordsMax,
        .options = {"service", "client", "point", "match", "count", "seconds", "snap", "write", "namespace"},
        .summary =
            "Capture packets before and after translation as pcapng, each with its verdict or drop "
            "reason as a comment; FILTER as for tcpdump, see pcap-filter(7)",
        .run = nullptr,
        .perform = perform_capture};
}

}  // namespace penstock::cli
