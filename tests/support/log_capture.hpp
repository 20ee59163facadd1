// SPDX-License-Identifier: Apache-2.0
// Captures the lines of one of the programs' loggers at level trace during its lifetime; they do not reach
// standard error.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "control/log/log.hpp"

namespace penstock::test {

class LogCapture {
 public:
    explicit LogCapture(std::string_view logger)
        : logger_(log::get(logger)), sink_(std::make_shared<Sink>()), level_(logger_.level()) {
        usual_ = std::exchange(logger_.sinks(), {sink_});
        logger_.set_level(spdlog::level::trace);
    }
    ~LogCapture() {
        logger_.sinks() = usual_;
        logger_.set_level(level_);
    }
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;

    std::vector<std::string> lines() const { return sink_->lines(); }
    size_t count(std::string_view part) const {
        size_t found = 0;
        for (const std::string& line : lines()) {
            found += line.find(part) == std::string::npos ? 0 : 1;
        }
        return found;
    }

 private:
    class Sink : public spdlog::sinks::base_sink<std::mutex> {
     public:
        std::vector<std::string> lines() {
            const std::lock_guard lock(mutex_);
            return lines_;
        }

     protected:
        void sink_it_(const spdlog::details::log_msg& message) override {
            lines_.emplace_back(message.payload.begin(), message.payload.end());
        }
        void flush_() override {}

     private:
        std::vector<std::string> lines_;
    };

    spdlog::logger& logger_;
    std::shared_ptr<Sink> sink_;
    std::vector<spdlog::sink_ptr> usual_;
    spdlog::level::level_enum level_;
};

}  // namespace penstock::test
