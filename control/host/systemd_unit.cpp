// SPDX-License-Identifier: Apache-2.0
#include "control/host/systemd_unit.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

// In falling order of precedence.
constexpr std::string_view kFolders[] = {"/etc/systemd/system", "/run/systemd/system",
                                         "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                         "/lib/systemd/system"};

void read_value(const Root& root, const std::string& file, std::string_view key,
                std::optional<UnitSetting>& found) {
    const std::string text = root.text(file).value_or("");
    for (const std::string_view line : split(text, '\n')) {
        const size_t equals = line.find('=');
        if (equals != std::string_view::npos && trimmed(line.substr(0, equals)) == key) {
            found = UnitSetting{std::string(trimmed(line.substr(equals + 1))), file};
        }
    }
}

}  // namespace

std::optional<UnitSetting> unit_setting(const Root& root, std::string_view unit, std::string_view key) {
    std::string main;
    std::map<std::string, std::string> drop_ins;  // by name; the folder with the highest precedence
    for (const std::string_view folder : kFolders) {
        const std::string file = std::string(folder) + "/" + std::string(unit);
        if (main.empty() && root.exists(file)) {
            main = file;
        }
        for (const std::string& name : root.names(file + ".d")) {
            if (name.ends_with(".conf")) {
                drop_ins.try_emplace(name, file + ".d/" + name);
            }
        }
    }
    std::optional<UnitSetting> found;
    if (main.empty()) {
        return found;
    }
    read_value(root, main, key, found);
    for (const auto& [name, file] : drop_ins) {
        read_value(root, file, key, found);
    }
    return found;
}

}  // namespace penstock::host
