// SPDX-License-Identifier: Apache-2.0
#include "drivers/steering/rss.hpp"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "dataplane/base/check.hpp"
#include "dataplane/nat/toeplitz.hpp"

namespace penstock::drivers {
namespace {

constexpr struct {
    bool RssKinds::* kind;
    uint64_t type;
    const char* name;
} kKinds[] = {
    {&RssKinds::tcp4, RTE_ETH_RSS_NONFRAG_IPV4_TCP, "tcp4"},
    {&RssKinds::udp4, RTE_ETH_RSS_NONFRAG_IPV4_UDP, "udp4"},
    {&RssKinds::tcp6, RTE_ETH_RSS_NONFRAG_IPV6_TCP, "tcp6"},
    {&RssKinds::udp6, RTE_ETH_RSS_NONFRAG_IPV6_UDP, "udp6"},
};

std::string key_text(const char* whose, size_t bytes) {
    return std::string(whose) + ", " + std::to_string(bytes) + " bytes";
}

// The RETA as in ethdev: groups of 64 entries with a mask each.
using TableGroups = std::vector<rte_eth_rss_reta_entry64>;

TableGroups groups_for(uint16_t entries) {
    TableGroups groups((entries + RTE_ETH_RETA_GROUP_SIZE - 1) / RTE_ETH_RETA_GROUP_SIZE);
    for (uint16_t entry = 0; entry < entries; ++entry) {
        groups[entry / RTE_ETH_RETA_GROUP_SIZE].mask |= uint64_t{1} << (entry % RTE_ETH_RETA_GROUP_SIZE);
    }
    return groups;
}

uint16_t& entry_of(TableGroups& groups, uint16_t entry) {
    return groups[entry / RTE_ETH_RETA_GROUP_SIZE].reta[entry % RTE_ETH_RETA_GROUP_SIZE];
}

// Reads key and types from the device. False if the driver does not report them, with the driver's message.
bool read_key(uint16_t dpdk_port, uint8_t bytes, RssReading& reading) {
    std::array<uint8_t, kRssKeyBytesMax + 1> buffer{};
    rte_eth_rss_conf found{};
    found.rss_key = buffer.data();
    found.rss_key_len = bytes;
    if (const int result = rte_eth_dev_rss_hash_conf_get(dpdk_port, &found); result != 0) {
        reading.key_reason = std::string("the driver does not report its RSS key: ") + rte_strerror(-result);
        return false;
    }
    reading.kinds = rss_kinds(found.rss_hf);
    // Some drivers set the length, others leave it unchanged.
    reading.key.assign(buffer.begin(), buffer.begin() + (found.rss_key_len == 0 ? bytes : found.rss_key_len));
    return true;
}

void configure_key(uint16_t dpdk_port, uint8_t bytes, RssRequest& request, RssReading& reading,
                   std::vector<PortSetting>& settings) {
    PortSetting setting{.name = "rss-key", .asked = "as it is", .granted = {}, .reason = request.key_refused};
    if (!request.key.empty()) {
        setting.asked = key_text("random", request.key.size());
    } else if (!request.key_refused.empty()) {
        setting.asked = "random";
    }
    bool readable = read_key(dpdk_port, bytes, reading);
    if (!request.key.empty() && (!readable || reading.key != request.key)) {
        // Some drivers do not accept the key as a part of the configuration.
        rte_eth_rss_conf wanted{};
        wanted.rss_key = request.key.data();
        wanted.rss_key_len = static_cast<uint8_t>(request.key.size());
        wanted.rss_hf = request.types;
        const int result = rte_eth_dev_rss_hash_update(dpdk_port, &wanted);
        readable = read_key(dpdk_port, bytes, reading);
        if (result != 0) {
            setting.reason = std::string("the driver does not accept a key: ") + rte_strerror(-result);
        } else if (readable && reading.key != request.key) {
            setting.reason = "the driver accepted it, but reports another one";
        }
    }
    if (readable) {
        reading.key_reason.clear();
        reading.key_taken = reading.key == request.key;
        setting.granted = key_text(reading.key_taken ? "random" : "the device's own", reading.key.size());
    } else if (setting.reason.empty()) {
        setting.reason = reading.key_reason;
    }
    note_setting(settings, std::move(setting));
}

void configure_table(uint16_t dpdk_port, uint16_t entries, uint16_t queues, RssReading& reading,
                     std::vector<PortSetting>& settings) {
    PortSetting setting{.name = "rss-table", .asked = {}, .granted = {}, .reason = {}};
    if (entries == 0) {
        reading.table_reason = "the driver reports no RSS indirection table";
        setting.reason = reading.table_reason;
        note_setting(settings, std::move(setting));
        return;
    }
    setting.asked = std::to_string(entries) + " entries over " + std::to_string(queues) + " queues in turn";
    TableGroups wanted = groups_for(entries);
    for (uint16_t entry = 0; entry < entries; ++entry) {
        entry_of(wanted, entry) = entry % queues;
    }
    const int taken = rte_eth_dev_rss_reta_update(dpdk_port, wanted.data(), entries);
    TableGroups found = groups_for(entries);
    if (const int result = rte_eth_dev_rss_reta_query(dpdk_port, found.data(), entries); result != 0) {
        reading.table_reason =
            std::string("the driver does not report its RSS indirection table: ") + rte_strerror(-result);
        setting.reason = reading.table_reason;
        note_setting(settings, std::move(setting));
        return;
    }
    bool same = true;
    for (uint16_t entry = 0; entry < entries; ++entry) {
        const uint16_t queue = entry_of(found, entry);
        if (queue >= queues) {  // the driver reads uninitialised entries
            reading.table.clear();
            reading.table_reason = "the RSS indirection table names queue " + std::to_string(queue) + " of " +
                                   std::to_string(queues);
            setting.reason = reading.table_reason;
            note_setting(settings, std::move(setting));
            return;
        }
        reading.table.push_back(queue);
        same = same && reading.table.back() == entry % queues;
    }
    reading.table_taken = taken == 0 && same;
    setting.granted = same ? setting.asked : std::to_string(entries) + " entries, the device's own";
    if (taken != 0) {
        setting.reason =
            same ? "" : std::string("the driver does not accept a table: ") + rte_strerror(-taken);
    } else if (!same) {
        setting.reason = "the driver accepted it, but reports another one";
    }
    note_setting(settings, std::move(setting));
}

// True if a reply's destination port alone can reach each entry of the largest table, and so of every smaller
// one. The condition: the 16 columns of the port's bits span the index bits. Then the workers' shares of an
// endpoint's ports are as even as the table, for any number of workers.
bool ports_reach_every_entry(const nat::Toeplitz& toeplitz, IpFamily family) {
    constexpr uint32_t kMask = nat::kReplyHashEntriesMax - 1;
    std::array<uint32_t, std::bit_width(kMask)> led_by{};  // the basis found so far, by highest bit
    size_t spanned = 0;
    for (uint32_t bit = 0; bit < 16; ++bit) {
        uint32_t column = toeplitz.of_destination_port(family, static_cast<L4Port>(1U << bit)) & kMask;
        while (column != 0) {
            uint32_t& known = led_by[static_cast<size_t>(std::bit_width(column)) - 1];
            if (known == 0) {
                known = column;
                ++spanned;
                break;
            }
            column ^= known;
        }
    }
    return spanned == led_by.size();
}

}  // namespace

std::vector<uint8_t> random_rss_key() {
    std::vector<uint8_t> key(kRssKeyBytesMax);
    bool is_good = false;
    while (!is_good) {  // one draw in nine is rejected
        PENSTOCK_CHECK(getrandom(key.data(), key.size(), 0) == static_cast<ssize_t>(key.size()));
        const nat::Toeplitz toeplitz(key);
        is_good = ports_reach_every_entry(toeplitz, IpFamily::V4) &&
                  ports_reach_every_entry(toeplitz, IpFamily::V6);
    }
    return key;
}

std::string to_string(const RssKinds& kinds) {
    std::string text;
    for (const auto& each : kKinds) {
        if (kinds.*each.kind) {
            text += (text.empty() ? "" : ",") + std::string(each.name);
        }
    }
    return text.empty() ? "none" : text;
}

RssKinds rss_kinds(uint64_t types) noexcept {
    RssKinds kinds;
    for (const auto& each : kKinds) {
        kinds.*each.kind = (types & each.type) != 0;
    }
    return kinds;
}

RssKinds without(RssKinds kinds, const RssKinds& others) {
    for (const auto& each : kKinds) {
        kinds.*each.kind = kinds.*each.kind && !(others.*each.kind);
    }
    return kinds;
}

std::string obstacle_of(const RssReading& reading, unsigned workers) {
    if (!reading.granted) {
        return "the device has no RSS over addresses and ports";
    }
    if (reading.key.empty()) {
        return reading.key_reason;
    }
    if (reading.table.empty()) {
        return reading.table_reason;
    }
    const std::string why = nat::obstacle_of(reply_hash_of(reading, workers), workers);
    return why.empty() ? why : "its RSS cannot be used: " + why;
}

nat::ReplyHash reply_hash_of(const RssReading& reading, unsigned workers) {
    nat::ReplyHash hash{.key = reading.key,
                        .worker_of = {},
                        .tcp4 = reading.kinds.tcp4,
                        .udp4 = reading.kinds.udp4,
                        .tcp6 = reading.kinds.tcp6,
                        .udp6 = reading.kinds.udp6};
    hash.worker_of.reserve(reading.table.size());
    for (const uint16_t queue : reading.table) {
        hash.worker_of.push_back({static_cast<uint8_t>(queue % workers)});
    }
    return hash;
}

std::string difference(const PmdProfile& profile, const RssReading& reading) {
    if (profile.driver.empty()) {
        return {};
    }
    std::vector<std::string> found;
    const auto compare = [&found](const char* what, RssAccess expected, bool is_read, bool is_taken) {
        if (expected == RssAccess::Hidden) {
            if (is_read) {
                found.push_back(std::string("the ") + what + " can be read");
            }
        } else if (!is_read) {
            found.push_back(std::string("the ") + what + " cannot be read");
        } else if (expected == RssAccess::Settable && !is_taken) {
            found.push_back(std::string("the ") + what + " cannot be set");
        } else if (expected == RssAccess::Fixed && is_taken) {
            found.push_back(std::string("the ") + what + " can be set");
        }
    };
    compare("key", profile.rss.key, !reading.key.empty(), reading.key_taken);
    compare("table", profile.rss.table, !reading.table.empty(), reading.table_taken);
    if (!reading.key.empty() && profile.rss.key_bytes != 0 && reading.key.size() != profile.rss.key_bytes) {
        found.push_back("the key has " + std::to_string(reading.key.size()) + " bytes");
    }
    if (const RssKinds lacking = without(profile.rss.kinds, reading.kinds); lacking.any()) {
        found.push_back(to_string(lacking) + " is not hashed");
    }
    if (const RssKinds extra = without(reading.kinds, profile.rss.kinds); extra.any()) {
        found.push_back(to_string(extra) + " is hashed");
    }
    std::string text;
    for (const std::string& each : found) {
        text += (text.empty() ? "" : "; ") + each;
    }
    return text;
}

RssReading configure_rss(uint16_t dpdk_port, RssRequest& request, std::vector<PortSetting>& settings) {
    RssReading reading;
    reading.granted = true;
    reading.kinds = rss_kinds(request.types);
    rte_eth_dev_info info{};
    // Queried again: some devices report the size of their table only after RSS is configured (vmxnet3).
    if (rte_eth_dev_info_get(dpdk_port, &info) != 0) {
        info.reta_size = 0;
    }
    const uint8_t key_bytes = info.hash_key_size == 0 ? kRssKeyBytesUsual : info.hash_key_size;
    configure_key(dpdk_port, key_bytes, request, reading, settings);
    configure_table(dpdk_port, info.reta_size, request.queues, reading, settings);
    const RssKinds missing = without(kAllRssKinds, reading.kinds);
    note_setting(
        settings,
        {.name = "rss-types",
         .asked = to_string(kAllRssKinds),
         .granted = to_string(reading.kinds),
         .reason = missing.any() ? "the device does not hash the ports of " + to_string(missing) : ""});
    return reading;
}

}  // namespace penstock::drivers
