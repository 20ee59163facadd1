// SPDX-License-Identifier: Apache-2.0
#include "control/cli/top/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace penstock::cli::top {
namespace {

// Set by the signal handler.
volatile std::sig_atomic_t signal_received = 0;

void note_signal(int) {
    signal_received = 1;
}

void write_all(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            return;
        }
        text.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
    }
}

}  // namespace

bool Terminal::is_available() {
    return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

Terminal::Terminal() {
    ::tcgetattr(STDIN_FILENO, &former_);
    termios raw = former_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped program would leave the terminal in this mode
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    struct sigaction action{};
    action.sa_handler = note_signal;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        ::sigaction(signal, &action, nullptr);
    }
    write_all("\033[?1049h\033[?25l");  // the alternate screen, without a cursor
}

Terminal::~Terminal() {
    write_all("\033[?25h\033[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &former_);
}

Terminal::Size Terminal::size() const {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
        return {};
    }
    return {size.ws_col, size.ws_row};
}

void Terminal::show(std::string_view lines) const {
    std::string text = "\033[H";
    while (!lines.empty()) {
        const size_t end = std::min(lines.find('\n'), lines.size());
        text += lines.substr(0, end);
        text += "\033[K";
        lines.remove_prefix(std::min(end + 1, lines.size()));
        text += lines.empty() ? "" : "\n";  // no line feed after the last line, which would scroll
    }
    write_all(text + "\033[J");
}

std::string Terminal::keys(std::chrono::milliseconds limit) const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(limit.count())) <= 0) {
        return "";
    }
    std::array<char, 64> typed{};
    const ssize_t size = ::read(STDIN_FILENO, typed.data(), typed.size());
    has_ended_ |= size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN);
    return size > 0 ? std::string(typed.data(), static_cast<size_t>(size)) : "";
}

bool Terminal::is_over() const {
    return has_ended_ || signal_received != 0;
}

}  // namespace penstock::cli::top
