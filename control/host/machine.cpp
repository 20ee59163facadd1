// SPDX-License-Identifier: Apache-2.0
#include "control/host/machine.hpp"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "control/base/descriptor.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

// One ethtool request. `request` begins with its command.
template <typename Ethtool>
bool ethtool(const std::string& interface, Ethtool& request) {
    ifreq ifr{};
    if (interface.size() >= sizeof(ifr.ifr_name)) {
        return false;
    }
    std::memcpy(ifr.ifr_name, interface.c_str(), interface.size());
    ifr.ifr_data = reinterpret_cast<char*>(&request);
    const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return socket.get() >= 0 && ::ioctl(socket.get(), SIOCETHTOOL, &ifr) == 0;
}

std::optional<Offloads> offloads_of(const std::string& interface) {
    constexpr std::array<std::pair<uint32_t, const char*>, 4> kSingle{
        {{ETHTOOL_GTXCSUM, "tx"}, {ETHTOOL_GTSO, "tso"}, {ETHTOOL_GGSO, "gso"}, {ETHTOOL_GGRO, "gro"}}};
    Offloads found;
    bool is_known = false;
    for (const auto& [command, name] : kSingle) {
        ethtool_value value{command, 0};
        if (ethtool(interface, value)) {
            is_known = true;
            if (value.data != 0) {
                found.emplace_back(name);
            }
        }
    }
    ethtool_value flags{ETHTOOL_GFLAGS, 0};
    if (ethtool(interface, flags) && (flags.data & ETH_FLAG_LRO) != 0) {
        found.emplace_back("lro");
    }
    return is_known ? std::optional(found) : std::nullopt;
}

std::string driver_of_interface(const std::string& interface) {
    ethtool_drvinfo info{};
    info.cmd = ETHTOOL_GDRVINFO;
    return ethtool(interface, info) ? std::string(info.driver, ::strnlen(info.driver, sizeof(info.driver)))
                                    : std::string();
}

std::optional<bool> clock_state() {
    timex state{};
    const int result = ::adjtimex(&state);  // modes 0: reads only
    return result < 0 ? std::nullopt
                      : std::optional(result != TIME_ERROR && (state.status & STA_UNSYNC) == 0);
}

struct Ended {
    int code = 0;
    std::string text;  // of both outputs
};
// Runs a program found by PATH, without input, until it ends. Nullopt: it cannot be started.
std::optional<Ended> run_program(std::vector<std::string> words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return std::nullopt;
    }
    const Descriptor reader(ends[0]);
    std::optional<Descriptor> writer(std::in_place, ends[1]);
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    pid_t child = 0;
    const int result = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    writer.reset();
    if (result != 0) {
        return std::nullopt;
    }
    Ended ended;
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::read(reader.get(), part.data(), part.size())) != 0;) {
        if (size > 0) {
            ended.text.append(part.data(), static_cast<size_t>(size));
        } else if (errno != EINTR) {
            break;
        }
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended;
}

// penstockd beside this program, as in a build folder and in /usr/bin, otherwise by PATH.
std::string penstockd_program() {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    for (const auto& place :
         {self.parent_path() / "penstockd", self.parent_path().parent_path() / "gateway" / "penstockd",
          std::filesystem::path("/usr/sbin/penstockd")}) {
        if (!error && ::access(place.c_str(), X_OK) == 0 && !std::filesystem::is_directory(place)) {
            return place.string();
        }
    }
    return "penstockd";
}

std::optional<std::vector<std::string>> mistakes_of_config(const std::string& file) {
    const auto ended = run_program({penstockd_program(), "--check-config", "--config", file});
    constexpr int kNotFound = 127;
    if (!ended || ended->code == kNotFound) {
        return std::nullopt;
    }
    std::vector<std::string> lines;
    for (std::string_view line :
         ended->code == 0 ? std::vector<std::string_view>() : split(ended->text, '\n')) {
        constexpr std::string_view kPrefix = "penstockd: ";
        if (line.starts_with(kPrefix)) {
            line.remove_prefix(kPrefix.size());
            lines.emplace_back(line);
        }
    }
    if (ended->code != 0 && lines.empty()) {
        lines.push_back("penstockd --check-config ended with " + std::to_string(ended->code));
    }
    return lines;
}

Status write_kernel_file(std::string_view path, std::string_view text) {
    const std::string file(path);
    const Descriptor descriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (descriptor.get() < 0 ||
        ::write(descriptor.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        const int reason = errno;
        return fail(reason == EACCES || reason == EPERM ? Errc::PermissionDenied : Errc::Unavailable,
                    file + ": " + std::strerror(reason));
    }
    return {};
}

Status load_kernel_module(const std::string& module) {
    const auto ended = run_program({"modprobe", module});
    if (!ended || ended->code != 0) {
        return fail(Errc::Unavailable,
                    "modprobe " + module + " failed" +
                        (ended ? ": " + std::string(trimmed(ended->text)) : std::string()));
    }
    return {};
}

}  // namespace

Machine real_machine() {
    return {.root = Root(),
            .offloads = offloads_of,
            .interface_driver = driver_of_interface,
            .is_clock_synchronised = clock_state,
            .now = [] { return std::chrono::system_clock::now(); },
            .check_config = mistakes_of_config,
            .write = write_kernel_file,
            .load_module = load_kernel_module};
}

}  // namespace penstock::host
