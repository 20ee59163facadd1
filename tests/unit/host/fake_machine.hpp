// SPDX-License-Identifier: Apache-2.0
// A machine in a temporary folder: files of /proc, /sys and /etc, and facts that tests set.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "control/host/doctor.hpp"
#include "control/host/machine.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::host::test {

class FakeMachine {
 public:
    FakeMachine() {
        machine.root = Root(folder.path());
        machine.offloads = [this](const std::string& interface) -> std::optional<Offloads> {
            const auto found = offloads.find(interface);
            return found == offloads.end() ? std::nullopt : std::optional(found->second);
        };
        machine.interface_driver = [this](const std::string& interface) {
            return offloads.contains(interface) ? "veth" : "";
        };
        machine.is_clock_synchronised = [this] { return clock; };
        machine.now = [this] { return now; };
        machine.check_config = [this](const std::string&) { return mistakes; };
        machine.write = [this](std::string_view path, std::string_view text) -> Status {
            if (!write) {
                return fail(Errc::Unavailable, "not writable");
            }
            return write(path, text);
        };
        machine.load_module = [this](const std::string& module) -> Status {
            modules.push_back(module);
            return {};
        };
    }

    void file(const std::string& path, const std::string& text) const { folder.write(path.substr(1), text); }
    void make_folder(const std::string& path) const {
        std::filesystem::create_directories(machine.root.at(path));
    }
    void remove(const std::string& path) const { std::filesystem::remove_all(machine.root.at(path)); }
    // Replaces a symbolic link. `target` is not resolved by the checks, only named.
    void link(const std::string& path, const std::string& target) const {
        const auto place = machine.root.at(path);
        std::filesystem::create_directories(place.parent_path());
        std::filesystem::remove(place);
        std::filesystem::create_symlink(target, place);
    }
    // The findings of one check for this configuration, as "LEVEL OBJECT: TEXT" and "  COMMAND" lines.
    std::vector<std::string> check(const std::string& name, const std::string& ini = "") const {
        std::string config;
        if (!ini.empty()) {
            config = "/etc/penstock/penstockd.ini";
            file(config, ini);
        }
        std::vector<std::string> lines;
        for (const Finding& finding : examine(machine, config)) {
            if (finding.check == name) {
                lines.push_back(std::string(to_string(finding.level)) + " " + finding.object + ": " +
                                finding.text);
                for (const std::string& command : finding.commands) {
                    lines.push_back("  " + command);
                }
            }
        }
        return lines;
    }

    penstock::test::ScratchFolder folder;
    Machine machine;
    std::map<std::string, Offloads> offloads;  // by interface
    std::optional<bool> clock = true;
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
    std::optional<std::vector<std::string>> mistakes = std::vector<std::string>();
    std::function<Status(std::string_view, std::string_view)> write;
    std::vector<std::string> modules;  // that were loaded
};

}  // namespace penstock::host::test
