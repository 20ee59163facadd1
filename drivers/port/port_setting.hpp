// One thing that was asked of a NicPort's device, what it granted, and why not more. Shown by `penstockctl get ports -o yaml`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace penstock::drivers {

struct PortSetting {
    std::string name;  // "rss-key", "rx-ipv4-cksum"
    std::string
        asked;  // "random, 40 bytes"; "" where the setting says what was found without being asked for
    std::string granted;  // "" nothing
    std::string reason;   // why not what was asked; "" where it was
    bool operator==(const PortSetting&) const = default;
};

// A setting is said once: a later answer to the same name takes the earlier one's place.
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
