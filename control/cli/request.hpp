// SPDX-License-Identifier: Apache-2.0
// The parsed and validated arguments of a command.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/cli/contexts.hpp"
#include "control/cli/output.hpp"
#include "control/cli/service_name.hpp"
#include "control/client/target.hpp"
#include "penstock/v1/debug.pb.h"
#include "penstock/v1/types.pb.h"

namespace penstock::cli {

struct Request {
    client::Target target;
    client::Target sync_target{client::kDefaultSyncTarget};
    client::TlsFiles tls;
    std::string config;   // the context file; "": the default one
    std::string context;  // "": the default of the file
    Contexts contexts;    // of the file, if the command or its options need it
    uint32_t timeout_s = 10;
    bool timeout_given = false;
    bool until_restart = false;
    std::string binary;  // for upgrade; "": the program's own path
    bool waits = false;  // likewise: for the result
    Format format = Format::Table;
    bool watch = false;
    bool no_headers = false;
    std::chrono::milliseconds interval{1'000};
    std::vector<std::string> arguments;  // after the words of the command

    std::string namespace_name;  // "": all
    v1::Protocol protocol = v1::PROTOCOL_UNSPECIFIED;
    v1::SocketAddress client;  // filters; empty address or port 0: any
    v1::SocketAddress frontend;
    v1::SocketAddress backend;
    uint32_t limit = 0;        // 0: none
    v1::SocketAddress source;  // for explain
    v1::SocketAddress destination;
    std::optional<uint32_t> nic_port = {};
    uint32_t queue = 0;
    bool not_syn = false;
    std::string view = "services";  // for top
    std::string sort;               // column; "": the first
    bool once = false;
    bool all = false;     // for clear: all Services
    ServiceName service;  // for capture
    std::vector<v1::CaptureRequest::Point> points;
    v1::CaptureRequest::Form form = v1::CaptureRequest::FORM_RECEIVED;
    uint64_t records_max = 0;  // 0: no limit
    uint32_t capture_seconds = 60;
    uint32_t snap_bytes = 128;
    std::string capture_file;  // "-": standard output; "": the same, unless it is a terminal

    [[nodiscard]] bool is_structured() const noexcept {
        return format == Format::Json || format == Format::Yaml;
    }
    [[nodiscard]] bool is_wide() const noexcept { return format == Format::Wide; }
};

}  // namespace penstock::cli
