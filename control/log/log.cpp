// SPDX-License-Identifier: Apache-2.0
#include "control/log/log.hpp"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::log {
namespace {

constexpr std::pair<std::string_view, spdlog::level::level_enum> kLevels[] = {
    {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug}, {"info", spdlog::level::info},
    {"warn", spdlog::level::warn},   {"error", spdlog::level::err},   {"off", spdlog::level::off},
};

std::string_view name_of(spdlog::level::level_enum level) {
    for (const auto& [name, value] : kLevels) {
        if (value == level) {
            return name;
        }
    }
    return "error";  // spdlog's critical: not used here, but available through its macros
}

std::optional<spdlog::level::level_enum> level_named(std::string_view name) {
    for (const auto& [known, value] : kLevels) {
        if (known == name) {
            return value;
        }
    }
    return std::nullopt;
}

Status check(std::string_view logger, std::string_view level) {
    if (!level_named(level)) {
        return fail(Errc::InvalidArgument, "log level \"" + std::string(level) +
                                               "\" is not one of trace, debug, info, warn, error, off");
    }
    if (!logger.empty() && std::ranges::find(kLoggers, logger) == std::end(kLoggers)) {
        return fail(Errc::NotFound, "unknown logger \"" + std::string(logger) + "\"");
    }
    return {};
}

// "rpc=debug" -> rpc, debug; "debug" -> "", debug.
std::pair<std::string_view, std::string_view> parts(std::string_view setting) {
    const size_t equals = setting.find('=');
    return equals == std::string_view::npos
               ? std::pair(std::string_view(), setting)
               : std::pair(setting.substr(0, equals), setting.substr(equals + 1));
}

// Length of the UTF-8 sequence that starts here, 0 if it is invalid (RFC 3629: no overlong forms, no
// surrogates, nothing past U+10FFFF).
size_t utf8_length(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto continues = [&](size_t i, unsigned from = 0x80, unsigned to = 0xbf) {
        return byte(i) >= from && byte(i) <= to;
    };
    const unsigned lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xc2 && lead <= 0xdf) {
        return continues(1) ? 2 : 0;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        return continues(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) && continues(2) ? 3 : 0;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        return continues(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) && continues(2) &&
                       continues(3)
                   ? 4
                   : 0;
    }
    return 0;
}

void append(spdlog::memory_buf_t& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
}

// 2026-11-21T13:17:50.123Z
void append_time(spdlog::memory_buf_t& out, spdlog::log_clock::time_point time) {
    const std::time_t seconds = spdlog::log_clock::to_time_t(time);
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    std::array<char, 32> text{};
    append(out, {text.data(), std::strftime(text.data(), text.size(), "%FT%T", &utc)});
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
    append(out, {text.data(), static_cast<size_t>(
                                  std::snprintf(text.data(), text.size(), ".%03dZ", static_cast<int>(ms)))});
}

class TextFormatter final : public spdlog::formatter {
 public:
    void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
        append_time(out, message.time);
        append(out, " ");
        append(out, name_of(message.level));
        append(out, " ");
        append(out, {message.logger_name.data(), message.logger_name.size()});
        append(out, ": ");
        // One record is one line, whatever a name from outside contains: a line break in a name must not
        // forge a record.
        for (const char c : std::string_view(message.payload.data(), message.payload.size())) {
            const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
            out.push_back(control ? ' ' : c);
        }
        append(out, "\n");
    }
    std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }
};

class JsonFormatter final : public spdlog::formatter {
 public:
    void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
        append(out, R"({"time":")");
        append_time(out, message.time);
        append(out, R"(","level":")");
        append(out, name_of(message.level));
        append(out, R"(","logger":")");
        append(out, {message.logger_name.data(), message.logger_name.size()});
        append(out, R"(","message":")");
        append(out, json_escaped({message.payload.data(), message.payload.size()}));
        append(out, "\"}\n");
    }
    std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

struct Loggers {
    Loggers() {
        auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
        for (const auto name : kLoggers) {
            auto logger = std::make_shared<spdlog::logger>(std::string(name), sink);
            logger->set_formatter(std::make_unique<TextFormatter>());
            logger->flush_on(spdlog::level::trace);  // a buffered line would be lost if the process dies
            all.push_back(std::move(logger));
        }
    }
    std::vector<std::shared_ptr<spdlog::logger>> all;
};

Loggers& loggers() {
    static Loggers instance;
    return instance;
}

}  // namespace

Result<Format> parse_format(std::string_view text) {
    if (text == "text") {
        return Format::Text;
    }
    if (text == "json") {
        return Format::Json;
    }
    return fail(Errc::InvalidArgument, "\"" + std::string(text) + "\" must be text or json");
}

void set_format(Format format) {
    for (const auto& logger : loggers().all) {
        if (format == Format::Json) {
            logger->set_formatter(std::make_unique<JsonFormatter>());
        } else {
            logger->set_formatter(std::make_unique<TextFormatter>());
        }
    }
}

spdlog::logger& get(std::string_view name) {
    const auto& all = loggers().all;
    const auto found = std::ranges::find_if(all, [&](const auto& logger) { return logger->name() == name; });
    PENSTOCK_CHECK(found != all.end());
    return **found;
}

Status set_level(std::string_view logger, std::string_view level) {
    PENSTOCK_TRY_STATUS(check(logger, level));
    for (const auto& candidate : loggers().all) {
        if (logger.empty() || candidate->name() == logger) {
            candidate->set_level(*level_named(level));
        }
    }
    return {};
}

Status check_setting(std::string_view setting) {
    const auto [logger, level] = parts(setting);
    return check(logger, level);
}

Status set_levels(const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
        const auto [logger, level] = parts(setting);
        PENSTOCK_TRY_STATUS(set_level(logger, level));
    }
    return {};
}

std::map<std::string, std::string> levels() {
    std::map<std::string, std::string> out;
    for (const auto& logger : loggers().all) {
        out.emplace(logger->name(), name_of(logger->level()));
    }
    return out;
}

std::string json_escaped(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const size_t length = utf8_length(text);
        const auto c = static_cast<unsigned char>(text.front());
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (c == '"' || c == '\\') {
            out += {'\\', static_cast<char>(c)};
        } else if (c == '\n') {
            out += "\\n";
        } else if (c < 0x20 || c == 0x7f) {
            out += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<size_t>(length, 1));
    }
    return out;
}

}  // namespace penstock::log
