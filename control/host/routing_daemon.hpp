// SPDX-License-Identifier: Apache-2.0
// Whether the configuration of a routing daemon exports the routes of protocol 80 (VIPs). Parsers of FRR's
// and BIRD's files, as far as this question needs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::host {

struct FrrConfig {
    std::string bgp_as;          // of `router bgp`; "": none
    bool redistributes = false;  // `redistribute kernel` in any routing protocol
    bool operator==(const FrrConfig&) const = default;
};
// frr.conf or bgpd.conf. Lines that begin with '!' or '#' are comments.
[[nodiscard]] FrrConfig parse_frr(std::string_view text);

struct BirdConfig {
    bool has_kernel = false;  // a block `protocol kernel`
    bool learns = false;      // ... with `learn`
    bool imports = false;     // ... that learns, and whose import accepts protocol 80
    bool includes = false;    // other files are included, which are not read
    bool operator==(const BirdConfig&) const = default;
};
// bird.conf of BIRD 2. A filter that does not name krt_source counts as one that accepts the routes.
[[nodiscard]] BirdConfig parse_bird(std::string_view text);

}  // namespace penstock::host
