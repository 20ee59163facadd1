// SPDX-License-Identifier: Apache-2.0
// Type of a plain YAML scalar: the resolution rules of YAML 1.1 as applied by the Kubernetes tools, so that a
// manifest has the same meaning as for kubectl. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "control/manifest/yaml_tree.hpp"

namespace penstock::manifest {

struct Scalar {
    Value::Kind kind = Value::Kind::String;
    bool boolean = false;
    int64_t integer = 0;
};

// 0x1f, 0b101, 0o17, 017 (octal) and 1_000 are integers; one that does not fit 64 bits is a Float, as in
// JSON.
[[nodiscard]] Scalar resolve_plain(std::string_view text) noexcept;

}  // namespace penstock::manifest
