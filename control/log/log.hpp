// Logging for the programs: spdlog loggers by name, one sink (standard error, which is what systemd and Kubernetes read), as text or as one
// JSON object a line. Levels change live. Never used in the packet path: workers count, they do not log.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::log {

enum class Format : uint8_t { Text, Json };

// Every logger of the product; the name is the room or the concern, and stands in each line.
//   control: start, stop, configuration;  rpc: gRPC streams;  drivers: ports, twins, netlink, DPDK;  metrics;  sync: state sent to
//   gateways; kube: objects and where they come from
inline constexpr std::string_view kLoggers[] = {"control", "rpc", "drivers", "metrics", "sync", "kube"};

// "text" or "json".
[[nodiscard]] Result<Format> parse_format(std::string_view text);

// From now on lines have this form. Any thread, but meant for the start of a program; loggers keep their levels.
void set_format(Format format);

// The logger of that name. Any thread; stops the program where the name is not one of kLoggers, since only code asks.
[[nodiscard]] spdlog::logger& get(std::string_view name);

// `logger` "" means all. `level`: trace, debug, info, warn, error, off. InvalidArgument for another level, NotFound for another logger.
Status set_level(std::string_view logger, std::string_view level);
// Whether "debug" or "rpc=debug" could be set; changes nothing.
[[nodiscard]] Status check_setting(std::string_view setting);
// Options of a program, of that form, in order, so that a later one refines an earlier one.
Status set_levels(const std::vector<std::string>& settings);
// The level of each logger as it is now.
[[nodiscard]] std::map<std::string, std::string> levels();

// The text inside a JSON string: quotes, backslashes and control characters escaped (RFC 8259), invalid UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string json_escaped(std::string_view text);

}  // namespace penstock::log
