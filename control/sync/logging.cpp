#include "control/sync/logging.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <map>
#include <memory>

namespace penstock::sync {
namespace {

// %* in the pattern: the message as a JSON string, quotes included.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
        out.push_back('"');
        for (const char c : message.payload) {
            const auto byte = static_cast<unsigned char>(c);
            if (c == '"' || c == '\\') {
                out.push_back('\\');
                out.push_back(c);
            } else if (byte < 0x20) {
                fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
            } else {
                out.push_back(c);
            }
        }
        out.push_back('"');
    }
    [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonMessage>(); }
};

}  // namespace

Status set_up_logging(const std::string& format, const std::string& level) {
    static const std::map<std::string, spdlog::level::level_enum> kLevels{{"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
                                                                          {"info", spdlog::level::info},   {"warn", spdlog::level::warn},
                                                                          {"error", spdlog::level::err},   {"off", spdlog::level::off}};
    const auto known = kLevels.find(level);
    if (known == kLevels.end()) {
        return fail(Errc::InvalidArgument, "--log-level " + level + ": must be trace, debug, info, warn, error or off");
    }
    if (format != "text" && format != "json") {
        return fail(Errc::InvalidArgument, "--log-format " + format + ": must be text or json");
    }
    auto logger = std::make_shared<spdlog::logger>("sync", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    if (format == "json") {
        formatter->add_flag<JsonMessage>('*').set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l","logger":"%n","message":%*})");
    } else {
        formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
    }
    logger->set_formatter(std::move(formatter));
    logger->set_level(known->second);
    // Whoever reads the log of a daemon that was killed wants its last line.
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
    return {};
}

}  // namespace penstock::sync
