// SPDX-License-Identifier: Apache-2.0
// A gRPC listen address: "unix:/run/penstock/penstockd.sock" or "192.0.2.1:9106". Pure.
#pragma once

#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::gateway {

struct ListenAddress {
    std::string text;  // in gRPC's format
    std::string path;  // of a Unix socket, otherwise ""
    [[nodiscard]] bool is_unix() const noexcept { return !path.empty(); }
    bool operator==(const ListenAddress&) const = default;

    // InvalidArgument: neither unix:/ABSOLUTE/PATH nor HOST:PORT.
    static Result<ListenAddress> parse(const std::string& text);
};

}  // namespace penstock::gateway
