// SPDX-License-Identifier: Apache-2.0
// One setting of a NicPort's device: the requested value, the granted value, and the reason for a difference.
// Shown by `penstockctl get ports -o yaml`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace penstock::drivers {

struct PortSetting {
    std::string name;     // "rss-key", "rx-ipv4-cksum"
    std::string asked;    // "random, 40 bytes"; "" if the setting reports a finding that was not requested
    std::string granted;  // "": nothing
    std::string reason;   // why the request was not granted; "" if it was
    bool operator==(const PortSetting&) const = default;
};

// Each setting is listed once: a later entry of the same name replaces the earlier one.
inline void note_setting(std::vector<PortSetting>& settings, PortSetting setting) {
    for (PortSetting& known : settings) {
        if (known.name == setting.name) {
            known = std::move(setting);
            return;
        }
    }
    settings.push_back(std::move(setting));
}

}  // namespace penstock::drivers
