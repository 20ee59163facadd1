// SPDX-License-Identifier: Apache-2.0
#include "control/shares/plan_text.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "control/base/line_mistakes.hpp"
#include "control/base/whole_file.hpp"
#include "control/client/target.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::shares {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view content) {
    Words words;
    while (!content.empty()) {
        const size_t end = std::min(content.find_first_of(kBlanks), content.size());
        words.push_back(content.substr(0, end));
        content = trimmed(content.substr(end));
    }
    return words;
}

// "weight=2": "weight" and "2".
std::pair<std::string_view, std::string_view> key_and_value(std::string_view word) {
    const size_t equals = std::min(word.find('='), word.size());
    return {word.substr(0, equals), word.substr(std::min(equals + 1, word.size()))};
}

bool is_allowed_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}
bool is_allowed_in_address(char c) {
    return is_allowed_in_name(c) || c == ':' || c == '[' || c == ']' || c == '%';
}

bool is_global_unicast(const IpAddr& address) {
    return !address.is_unspecified() && !address.is_loopback() && !address.is_link_local() &&
           !address.is_multicast() && !address.is_reserved_v4();
}

class Reader {
 public:
    Result<Plan> read(std::string_view text) {
        for_each_line(text, [&](std::string_view content, uint32_t line) {
            line_ = line;
            const Words words = words_of(content);
            if (has_ended_) {
                wrong("text after the end");
            } else if (words[0] == "end" && words.size() == 1) {
                has_ended_ = true;
            } else if (words[0] == "version") {
                read_version(words);
            } else if (words[0] == "gateway") {
                read_gateway(words);
            } else if (words[0] == "shares") {
                read_count(words);
            } else if (words[0] == "share") {
                read_share(words);
            } else if (words[0] == "strays") {
                read_strays(words);
            } else if (words[0] == "spread") {
                read_spread(words);
            } else {
                wrong(quoted_start(words[0]) +
                      " is not version, gateway, shares, share, strays, spread or end");
            }
            return true;
        });
        check_whole();
        if (mistakes_.any()) {
            return mistakes_.error();
        }
        complete();
        return std::move(plan_);
    }

 private:
    void wrong(const std::string& what) { mistakes_.add(line_, what); }

    void read_version(const Words& words) {
        const auto number = words.size() == 2 ? whole_number<uint64_t>(words[1]) : std::nullopt;
        if (plan_.version != 0) {
            wrong("a second version");
        } else if (!number || *number == 0 || *number > kVersionMax) {
            wrong("write `version NUMBER`, from 1 to " + std::to_string(kVersionMax));
        } else {
            plan_.version = *number;
        }
    }

    void read_gateway(const Words& words) {
        if (words.size() < 2 || !is_gateway_name(words[1])) {
            return wrong(
                "write `gateway NAME [weight=NUMBER] [address=HOST:PORT] [link=ADDRESS]`: NAME is the "
                "--gateway-name of a gateway, of " +
                std::string(kGatewayNameRule));
        }
        Gateway gateway{.name = std::string(words[1])};
        std::set<std::string_view> keys;
        for (size_t i = 2; i < words.size(); ++i) {
            const auto [key, value] = key_and_value(words[i]);
            if (!keys.insert(key).second) {
                wrong("gateway " + gateway.name + ": " + quoted_start(key) + " is given twice");
            } else if (key == "weight") {
                read_weight(value, gateway);
            } else if (key == "address") {
                read_address(value, gateway);
            } else if (key == "link") {
                read_link(value, gateway);
            } else {
                wrong("gateway " + gateway.name + ": " + quoted_start(words[i]) +
                      " is not weight=, address= or link=");
            }
        }
        if (plan_.gateway(gateway.name) != nullptr) {
            wrong("gateway " + gateway.name + " is listed already");
        } else if (plan_.gateways.size() == kGatewaysMax) {
            wrong("more than " + std::to_string(kGatewaysMax) + " gateways");
        } else {
            plan_.gateways.push_back(std::move(gateway));
        }
    }

    void read_weight(std::string_view value, Gateway& gateway) {
        const auto weight = whole_number<uint8_t>(value);
        if (!weight || *weight == 0 || *weight > kWeightMax) {
            return wrong("gateway " + gateway.name + ": weight " + quoted_start(value) +
                         " must be a number from 1 to " + std::to_string(kWeightMax));
        }
        gateway.weight = *weight;
    }

    void read_address(std::string_view value, Gateway& gateway) {
        const auto target = client::parse_target(value);
        if (!target || target->is_unix() || value.size() > kGatewayAddressBytesMax ||
            !std::ranges::all_of(value, is_allowed_in_address)) {
            return wrong("gateway " + gateway.name + ": address " + quoted_start(value) +
                         " must be HOST:PORT: a name, an IPv4 address or an IPv6 address in brackets, and a "
                         "port from 1 to 65535");
        }
        if (const auto former = addresses_.emplace(value, gateway.name); !former.second) {
            return wrong("gateway " + gateway.name + ": address " + quoted_start(value) + " is that of " +
                         former.first->second);
        }
        gateway.address = value;
    }

    void read_link(std::string_view value, Gateway& gateway) {
        const auto address = IpAddr::parse(value);
        if (!address || !is_global_unicast(*address)) {
            return wrong("gateway " + gateway.name + ": link " + quoted_start(value) +
                         " is not a global unicast address");
        }
        if (const auto [former, is_new] = links_.emplace(*address, gateway.name); !is_new) {
            return wrong("gateway " + gateway.name + ": link " + address->to_string() + " is that of " +
                         former->second);
        }
        gateway.link = *address;
    }

    void read_strays(const Words& words) {
        if (words.size() != 2 || words[1] != "forward") {
            wrong("write `strays forward`");
        } else if (plan_.forwards_strays) {
            wrong("strays are forwarded already");
        } else {
            plan_.forwards_strays = true;
        }
    }

    void read_spread(const Words& words) {
        const auto [name, value] = key_and_value(words.size() == 3 ? words[2] : "");
        const auto key = name == "key" ? whole_number<uint64_t>(value) : std::nullopt;
        if (!key || *key == 0) {
            return wrong(
                "write `spread VIPS key=NUMBER`: VIPS are prefixes with commas between them, NUMBER is "
                "random, and the same on all gateways");
        }
        if (plan_.spread_key != 0) {
            return wrong("a second list of spread VIPs");
        }
        plan_.spread_key = *key;
        read_vips(words[1], plan_.spread);
        std::ranges::sort(plan_.spread);
    }

    void read_count(const Words& words) {
        const auto number = words.size() == 2 ? whole_number<size_t>(words[1]) : std::nullopt;
        if (count_) {
            wrong("a second number of shares");
        } else if (!number || *number == 0 || *number > kSharesMax) {
            wrong("write `shares NUMBER`, from 1 to " + std::to_string(kSharesMax));
        } else {
            count_ = *number;
        }
    }

    void read_share(const Words& words) {
        const auto number = words.size() > 1 ? whole_number<size_t>(words[1]) : std::nullopt;
        if (!number || *number >= kSharesMax) {
            return wrong(
                "write `share NUMBER [vips=LIST] [primary=NAME] [heir=NAME] [snat=LIST]`, numbers from 0");
        }
        if (!given_.emplace(*number, line_).second) {
            return wrong("share " + std::to_string(*number) + " is given already");
        }
        plan_.shares.resize(std::max(plan_.shares.size(), *number + 1));
        Share& share = plan_.shares[*number];
        std::set<std::string_view> keys;
        for (size_t i = 2; i < words.size(); ++i) {
            const auto [key, value] = key_and_value(words[i]);
            if (value.empty()) {
                wrong(quoted_start(words[i]) + " has no value");
            } else if (!keys.insert(key).second) {
                wrong(quoted_start(key) + " is given twice");
            } else if (key == "vips") {
                read_vips(value, share.vips);
            } else if (key == "primary") {
                share.primary = value;
            } else if (key == "heir") {
                share.heir = value;
            } else if (key == "snat") {
                read_snat(value, share, *number);
            } else {
                wrong(quoted_start(words[i]) + " is not vips=, primary=, heir= or snat=");
            }
        }
        std::ranges::sort(share.vips);
        std::ranges::sort(share.snat);
    }

    void read_vips(std::string_view value, std::vector<Prefix>& vips) {
        for (const std::string_view text : split(value, ',')) {
            const auto address = IpAddr::parse(text.substr(0, text.find('/')));
            const auto prefix = address && !text.contains('/') ? Prefix::host(*address) : Prefix::parse(text);
            if (!address || !prefix) {
                wrong(quoted_start(text) + " is neither an address nor a prefix");
            } else if (prefix->address() != *address) {
                wrong(quoted_start(text) + " has bits beyond its prefix length: write " +
                      prefix->to_string());
            } else if (const auto [at, is_new] = vips_.emplace(*prefix, line_); !is_new) {
                wrong(prefix->to_string() + " is among the VIPs of line " + std::to_string(at->second) +
                      " already");
            } else {
                vips.push_back(*prefix);
            }
        }
    }

    void read_snat(std::string_view value, Share& share, size_t number) {
        for (const std::string_view text : split(value, ',')) {
            const auto address = IpAddr::parse(text);
            if (!address || !is_global_unicast(*address)) {
                wrong(quoted_start(text) + " is not a global unicast address");
            } else if (const auto [at, is_new] = snat_.emplace(*address, number); !is_new) {
                wrong(address->to_string() + " is a SNAT address of share " + std::to_string(at->second) +
                      " already");
            } else {
                share.snat.push_back(*address);
            }
        }
    }

    void check_whole() {
        if (!has_ended_) {
            mistakes_.add("the last line is not `end`: the file is not complete");
        }
        if (plan_.version == 0) {
            mistakes_.add("no version: add `version 1`, and raise the number with each change");
        }
        if (plan_.gateways.empty()) {
            mistakes_.add("no gateway");
        }
        if (vips_.size() > kPlacedMax) {
            mistakes_.add("more than " + std::to_string(kPlacedMax) + " prefixes of VIPs");
        }
        if (snat_.size() > limits::kSnatAddressesMax) {
            mistakes_.add("more than " + std::to_string(limits::kSnatAddressesMax) + " SNAT addresses");
        }
        check_strays();
        const size_t count = count_.value_or(kSharesDefault);
        for (const auto& [number, line] : given_) {
            line_ = line;
            if (number >= count) {
                wrong("share " + std::to_string(number) + " is not one of the " + std::to_string(count) +
                      " shares, which are numbered from 0");
            }
            check_share(plan_.shares[number]);
        }
        plan_.shares.resize(count);
    }

    // Any gateway may get packets of any share.
    void check_strays() {
        if (!plan_.forwards_strays) {
            if (plan_.spread_key != 0) {
                mistakes_.add("spread VIPs reach gateways that do not serve them: add `strays forward`");
            }
            return;
        }
        for (const Gateway& gateway : plan_.gateways) {
            if (!gateway.link) {
                mistakes_.add("strays forward: gateway " + gateway.name +
                              " has no link=ADDRESS, by which the others reach it on a common link");
            } else if (snat_.contains(*gateway.link)) {
                mistakes_.add("gateway " + gateway.name + ": link " + gateway.link->to_string() +
                              " is a SNAT address of share " + std::to_string(snat_.at(*gateway.link)));
            }
        }
    }

    void check_share(const Share& share) {
        for (const auto& [key, name] : {std::pair("primary", share.primary), std::pair("heir", share.heir)}) {
            if (!name.empty() && plan_.gateway(name) == nullptr) {
                wrong(std::string(key) + " " + quoted_start(name) + " is not a gateway of this file");
            }
        }
        if (!share.heir.empty() && share.primary == share.heir) {
            wrong(quoted_start(share.heir) + " is both primary and heir");
        }
        for (const IpAddr& snat : share.snat) {
            for (const auto& [vips, line] : vips_) {
                if (vips.contains(snat)) {
                    wrong("SNAT address " + snat.to_string() + " is among the VIPs " + vips.to_string() +
                          " of line " + std::to_string(line));
                }
            }
        }
    }

    // Fills in the gateways that the file leaves to the hash.
    void complete() {
        for (size_t number = 0; number < plan_.shares.size(); ++number) {
            Share& share = plan_.shares[number];
            for (const std::string& name : by_preference(plan_.gateways, number)) {
                if (share.primary.empty() && name != share.heir) {
                    share.primary = name;
                } else if (share.heir.empty() && name != share.primary) {
                    share.heir = name;
                }
            }
            if (share.primary.empty()) {  // the only gateway was given as the heir
                share.primary = std::exchange(share.heir, {});
            }
        }
    }

    Plan plan_;
    std::optional<size_t> count_;
    std::map<size_t, uint32_t> given_;                           // lines by the number of the share
    std::map<std::string, std::string, std::less<>> addresses_;  // names by the address of a gateway
    std::map<IpAddr, std::string> links_;                        // the same by its link=
    std::map<Prefix, uint32_t> vips_;
    std::map<IpAddr, size_t> snat_;  // shares
    LineMistakes mistakes_{kPlanMistakesMax};
    uint32_t line_ = 0;
    bool has_ended_ = false;
};

}  // namespace

Result<Plan> parse_plan(std::string_view text) {
    if (text.size() > kPlanBytesMax) {
        return fail(Errc::InvalidArgument, "more than " + std::to_string(kPlanBytesMax) + " bytes");
    }
    return Reader().read(text);
}

bool is_gateway_name(std::string_view text) noexcept {
    return !text.empty() && text.size() <= kGatewayNameBytesMax &&
           std::ranges::all_of(text, is_allowed_in_name);
}

Result<std::string> read_plan_text(const std::filesystem::path& file) {
    PENSTOCK_TRY(auto text, read_whole_file(file.string(), kPlanBytesMax));
    if (!text) {
        return fail(Errc::NotFound, file.string() + ": no such file");
    }
    return std::move(*text);
}

Result<Plan> read_plan(const std::filesystem::path& file) {
    PENSTOCK_TRY(const auto text, read_plan_text(file));
    PENSTOCK_TRY_IN(file.string(), Plan plan, parse_plan(text));
    return plan;
}

}  // namespace penstock::shares
