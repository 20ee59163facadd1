// SPDX-License-Identifier: Apache-2.0
// The terminal of `penstockctl top`: full screen, single keys. The destructor restores it, also after SIGINT,
// SIGTERM and SIGHUP, which only end the wait for a key.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include <termios.h>

namespace penstock::cli::top {

class Terminal {
 public:
    // Whether both standard input and output are a terminal. Otherwise output goes to a file or pipe.
    [[nodiscard]] static bool is_available();

    Terminal();
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    struct Size {
        size_t width = 80;
        size_t height = 24;
    };
    [[nodiscard]] Size size() const;
    // Replaces the screen by these lines.
    void show(std::string_view lines) const;
    // Waits until a key is pressed or the time is over, and returns the keys; "": none.
    [[nodiscard]] std::string keys(std::chrono::milliseconds limit) const;
    // Whether a signal or the end of the input asks for the end.
    [[nodiscard]] bool is_over() const;

 private:
    termios former_{};
    mutable bool has_ended_ = false;  // the terminal is gone
};

}  // namespace penstock::cli::top
