// SPDX-License-Identifier: Apache-2.0
// Logging for the programs: named spdlog loggers, one sink (standard error, which systemd and Kubernetes
// collect), as text or as one JSON object per line. Levels can be changed at runtime. Never used in the
// packet path: workers count, they do not log.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::log {

enum class Format : uint8_t { Text, Json };

// All loggers of the product. The name is the room or the concern, and is part of each line.
//   control: start, stop, configuration;  rpc: gRPC streams;  drivers: ports, twins, netlink, DPDK;  metrics;
//   sync: state sent to gateways; kube: objects and their sources
inline constexpr std::string_view kLoggers[] = {"control", "rpc", "drivers", "metrics", "sync", "kube"};

// "text" or "json".
[[nodiscard]] Result<Format> parse_format(std::string_view text);

// Sets the format of all following lines. Any thread, but intended for program start; loggers keep their
// levels.
void set_format(Format format);

// The logger of that name. Any thread; stops the program if the name is not one of kLoggers, since only code
// passes names.
[[nodiscard]] spdlog::logger& get(std::string_view name);

// An empty `logger` means all. `level`: trace, debug, info, warn, error, off. InvalidArgument for another
// level, NotFound for another logger.
Status set_level(std::string_view logger, std::string_view level);
// Checks whether a setting such as "debug" or "rpc=debug" is valid; changes nothing.
[[nodiscard]] Status check_setting(std::string_view setting);
// Applies program options of that form in order; later ones override earlier ones.
Status set_levels(const std::vector<std::string>& settings);
// The current level of each logger.
[[nodiscard]] std::map<std::string, std::string> levels();

// The text inside a JSON string: quotes, backslashes and control characters escaped (RFC 8259), invalid UTF-8
// replaced by U+FFFD.
[[nodiscard]] std::string json_escaped(std::string_view text);

}  // namespace penstock::log
