// SPDX-License-Identifier: Apache-2.0
#include "tests/support/soft_nic/device_arguments.hpp"

#include <rte_ethdev.h>
#include <rte_flow.h>

#include <bit>
#include <charconv>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::test {
namespace {

using Words = std::map<std::string_view, uint64_t>;

// A hash by addresses also applies to fragments and to everything that is neither TCP nor UDP, as drivers
// group it.
const Words kRssWords = {
    {"ipv4", RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER},
    {"tcp4", RTE_ETH_RSS_NONFRAG_IPV4_TCP},
    {"udp4", RTE_ETH_RSS_NONFRAG_IPV4_UDP},
    {"ipv6", RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER},
    {"tcp6", RTE_ETH_RSS_NONFRAG_IPV6_TCP},
    {"udp6", RTE_ETH_RSS_NONFRAG_IPV6_UDP},
    {"none", 0},
};

constexpr uint64_t bit(int type) {
    return uint64_t{1} << type;
}
const Words kItemWords = {
    {"eth", bit(RTE_FLOW_ITEM_TYPE_ETH)},   {"vlan", bit(RTE_FLOW_ITEM_TYPE_VLAN)},
    {"ipv4", bit(RTE_FLOW_ITEM_TYPE_IPV4)}, {"ipv6", bit(RTE_FLOW_ITEM_TYPE_IPV6)},
    {"tcp", bit(RTE_FLOW_ITEM_TYPE_TCP)},   {"udp", bit(RTE_FLOW_ITEM_TYPE_UDP)},
};
const Words kActionWords = {
    {"queue", bit(RTE_FLOW_ACTION_TYPE_QUEUE)}, {"drop", bit(RTE_FLOW_ACTION_TYPE_DROP)},
    {"mark", bit(RTE_FLOW_ACTION_TYPE_MARK)},   {"rss", bit(RTE_FLOW_ACTION_TYPE_RSS)},
    {"count", bit(RTE_FLOW_ACTION_TYPE_COUNT)}, {"passthru", bit(RTE_FLOW_ACTION_TYPE_PASSTHRU)},
};
const Words kAccessWords = {{"set", static_cast<uint64_t>(Access::Set)},
                            {"fixed", static_cast<uint64_t>(Access::Fixed)},
                            {"ignored", static_cast<uint64_t>(Access::Ignored)},
                            {"hidden", static_cast<uint64_t>(Access::Hidden)}};
const Words kTableAccessWords = {
    {"set", static_cast<uint64_t>(Access::Set)},         {"fixed", static_cast<uint64_t>(Access::Fixed)},
    {"ignored", static_cast<uint64_t>(Access::Ignored)}, {"hidden", static_cast<uint64_t>(Access::Hidden)},
    {"partly", static_cast<uint64_t>(Access::Partly)},   {"beyond", static_cast<uint64_t>(Access::Beyond)}};
const Words kSpreadWords = {{"rss", static_cast<uint64_t>(Spread::Rss)},
                            {"random", static_cast<uint64_t>(Spread::Random)},
                            {"zero", static_cast<uint64_t>(Spread::Zero)},
                            {"wander", static_cast<uint64_t>(Spread::Wander)},
                            {"lies", static_cast<uint64_t>(Spread::Lies)}};
const Words kMaskWords = {{"any", 0}, {"whole", 1}};
const Words kIsolateWords = {{"0", static_cast<uint64_t>(Isolate::Never)},
                             {"1", static_cast<uint64_t>(Isolate::AnyTime)},
                             {"stopped", static_cast<uint64_t>(Isolate::Stopped)}};

uint64_t all_of(const Words& words) {
    uint64_t all = 0;
    for (const auto& [word, bits] : words) {
        all |= bits;
    }
    return all;
}

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const size_t end = std::min(text.find(at), text.size());
        parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

// The value of one argument; each reader returns whether it is valid.
class Value {
 public:
    explicit Value(std::string_view text) : text_(text) {}

    template <typename Number>
    [[nodiscard]] bool number(Number& to, uint64_t least, uint64_t most) const {
        uint64_t value = 0;
        const auto [end, wrong] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
        if (wrong != std::errc{} || end != text_.data() + text_.size() || value < least || value > most) {
            return false;
        }
        to = static_cast<Number>(value);
        return true;
    }
    template <typename Enum>
    [[nodiscard]] bool word(Enum& to, const Words& words) const {
        const auto known = words.find(text_);
        if (known != words.end()) {
            to = static_cast<Enum>(known->second);
        }
        return known != words.end();
    }
    [[nodiscard]] bool list(uint64_t& to, const Words& words) const {
        to = 0;
        for (const std::string_view one : split(text_, '+')) {
            const auto known = words.find(one);
            if (known == words.end()) {
                return false;
            }
            to |= known->second;
        }
        return !text_.empty();
    }
    [[nodiscard]] bool mac(std::optional<std::array<uint8_t, 6>>& to) const {
        std::array<uint8_t, 6> bytes{};
        int used = 0;
        const std::string whole(text_);
        const bool is_one = std::sscanf(whole.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &bytes[0],
                                        &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5], &used) == 6 &&
                            static_cast<size_t>(used) == whole.size();
        to = bytes;
        return is_one;
    }

 private:
    std::string_view text_;
};

}  // namespace

std::optional<DeviceArguments> parse_device_arguments(const std::string& text, std::string& error) {
    DeviceArguments made;
    made.rss_types = all_of(kRssWords);
    made.flow_items = all_of(kItemWords);
    made.flow_actions = all_of(kActionWords);
    for (const std::string_view argument : split(text, ',')) {
        const size_t equals = argument.find('=');
        const std::string_view key = argument.substr(0, equals);
        const Value value(equals == std::string_view::npos ? std::string_view()
                                                           : argument.substr(equals + 1));
        const bool good =
            key == "queues"      ? value.number(made.queues, 1, 64)
            : key == "key_bytes" ? value.number(made.key_bytes, 40, 52) && made.key_bytes % 12 == 4
            : key == "key"       ? value.word(made.key, kAccessWords)
            : key == "reta"      ? value.number(made.reta, 0, 512) && (made.reta == 0 || made.reta >= 64) &&
                                  (made.reta == 0 || std::has_single_bit(made.reta))
            : key == "reta_access"     ? value.word(made.reta_access, kTableAccessWords)
            : key == "rss"             ? value.list(made.rss_types, kRssWords)
            : key == "rss_hash"        ? value.number(made.rss_hash, 0, 1)
            : key == "spread"          ? value.word(made.spread, kSpreadWords)
            : key == "seed"            ? value.number(made.seed, 0, UINT64_MAX)
            : key == "flow_rules"      ? value.number(made.flow_rules, 0, 1'000'000)
            : key == "flow_items"      ? value.list(made.flow_items, kItemWords)
            : key == "flow_actions"    ? value.list(made.flow_actions, kActionWords)
            : key == "flow_masks"      ? value.word(made.whole_masks_only, kMaskWords)
            : key == "flow_priorities" ? value.number(made.flow_priorities, 1, 1'000'000)
            : key == "isolate"         ? value.word(made.isolate, kIsolateWords)
            : key == "checksum"        ? value.number(made.checksum, 0, 1)
            : key == "loopback"        ? value.number(made.loopback, 0, 1)
            : key == "interrupts"      ? value.number(made.interrupts, 0, 1)
            : key == "mtu_max"         ? value.number(made.mtu_max, 1280, 9216)
            : key == "mac"             ? value.mac(made.mac)
                                       : false;
        if (!good) {
            error = "no argument of a software NIC: " + std::string(argument);
            return std::nullopt;
        }
    }
    return made;
}

}  // namespace penstock::test
