// SPDX-License-Identifier: Apache-2.0
#include "control/host/pmd_library.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

constexpr std::string_view kMark = "PMD_INFO_STRING= {";
// Longer than any of DPDK 22.11: the longest, of net_sfc, has 2,300 bytes.
constexpr size_t kInfoBytesMax = 64 * 1024;
constexpr size_t kIdsMax = 4096;

// The text between the quotes after `"key": "`; "" if there is none.
std::string quoted_value(std::string_view json, const std::string& key) {
    const std::string start = "\"" + key + "\": \"";
    const size_t at = json.find(start);
    if (at == std::string_view::npos) {
        return "";
    }
    const std::string_view value = json.substr(at + start.size());
    return std::string(value.substr(0, value.find('"')));
}

// "32902, 4333, 65535, 65535"
std::optional<PciId> pci_id(std::string_view text) {
    std::array<uint16_t, 4> numbers{};
    const auto fields = split(text, ',');
    if (fields.size() != numbers.size()) {
        return std::nullopt;
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
        const auto number = whole_number<uint16_t>(fields[i]);
        if (!number) {
            return std::nullopt;
        }
        numbers[i] = *number;
    }
    return PciId{numbers[0], numbers[1], numbers[2], numbers[3]};
}

constexpr std::string_view kPmdPrefix = "librte_net_";

// "23.0" of ".../pmds-23.0"; "": the folder has another name.
std::string abi_of(const std::string& folder) {
    constexpr std::string_view kName = "pmds-";
    const size_t at = folder.rfind(kName);
    return at == std::string::npos ? "" : folder.substr(at + kName.size());
}

std::string file_ending(const std::string& folder) {
    const std::string abi = abi_of(folder);
    return abi.empty() ? ".so" : ".so." + abi;
}

}  // namespace

bool PciId::matches(const PciId& other) const noexcept {
    const auto is = [](uint16_t mine, uint16_t its) { return mine == kAny || mine == its; };
    return is(vendor, other.vendor) && is(device, other.device) &&
           is(subsystem_vendor, other.subsystem_vendor) && is(subsystem_device, other.subsystem_device);
}

// PMD_INFO_STRING= {"name": "net_x", "params": "...", "kmod": "...", "pci_ids": [[1, 2, 65535, 65535], ...]}
std::vector<PmdInfo> pmd_infos(std::string_view library) {
    std::vector<PmdInfo> infos;
    for (size_t at = library.find(kMark); at != std::string_view::npos; at = library.find(kMark, at)) {
        at += kMark.size();
        std::string_view entry = library.substr(at, kInfoBytesMax);
        entry = entry.substr(0, entry.find('\0'));
        PmdInfo info{quoted_value(entry, "name"), quoted_value(entry, "kmod"), {}};
        size_t open = entry.find("\"pci_ids\": [");
        if (info.name.empty() || open == std::string_view::npos) {
            continue;
        }
        open = entry.find('[', open) + 1;  // of the list; the next ones are of its entries
        while (info.ids.size() < kIdsMax && (open = entry.find('[', open)) != std::string_view::npos) {
            const size_t close = entry.find(']', open);
            if (close == std::string_view::npos) {
                break;
            }
            if (const auto id = pci_id(entry.substr(open + 1, close - open - 1))) {
                info.ids.push_back(*id);
            }
            open = close;
        }
        infos.push_back(std::move(info));
    }
    return infos;
}

std::string pmd_folder(const Root& root) {
    for (const char* prefix : {"/usr/lib", "/usr/local/lib"}) {
        std::vector<std::string> libraries{prefix};
        for (const std::string& triplet : root.names(prefix)) {
            libraries.push_back(std::string(prefix) + "/" + triplet);
        }
        for (const std::string& folder : libraries) {
            for (const std::string& name : root.names(folder + "/dpdk")) {
                if (name.starts_with("pmds-")) {
                    return folder + "/dpdk/" + name;
                }
            }
        }
    }
    return "";
}

std::optional<PmdLibrary> find_pmd(const Root& root, const std::string& folder, const PciId& id) {
    const std::string ending = file_ending(folder);
    for (const std::string& file : root.names(folder)) {
        if (!file.starts_with(kPmdPrefix) || !file.ends_with(ending)) {
            continue;
        }
        const auto library = root.text(folder + "/" + file);
        for (PmdInfo& info : library ? pmd_infos(*library) : std::vector<PmdInfo>()) {
            if (std::ranges::any_of(info.ids, [&](const PciId& one) { return one.matches(id); })) {
                return PmdLibrary{file, std::move(info)};
            }
        }
    }
    return std::nullopt;
}

std::string library_of(const std::string& driver) {
    const std::string name = driver.starts_with("net_")   ? driver.substr(4)
                             : driver.starts_with("eth_") ? driver.substr(4)
                                                          : driver;
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOthers = {
        {{"bonding", "bond"}, {"virtio_user", "virtio"}, {"tun", "tap"}}};
    const auto other = std::ranges::find(kOthers, name, [](const auto& pair) { return pair.first; });
    return other == kOthers.end() ? name : std::string(other->second);
}

std::string pmd_file(const std::string& library, const std::string& folder) {
    return std::string(kPmdPrefix) + library + file_ending(folder);
}

std::string package_of(const std::string& library, const std::string& folder) {
    std::string name = library;
    std::ranges::replace(name, '_', '-');
    const std::string abi = abi_of(folder);
    const std::string version = abi.substr(0, abi.find('.'));
    // Debian writes a hyphen between two numbers: librte-net-ice23, librte-net-mlx5-23.
    const bool ends_in_digit = !name.empty() && name.back() >= '0' && name.back() <= '9';
    return "librte-net-" + name + (ends_in_digit && !version.empty() ? "-" : "") + version;
}

std::string library_for_kernel_driver(std::string_view kernel_driver) {
    // Names of Linux and of DPDK 22.11 for the same hardware.
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kNames = {
        {{"atlantic", "atlantic"}, {"bnx2x", "bnx2x"},  {"bnxt_en", "bnxt"},      {"cxgb4", "cxgbe"},
         {"e1000", "e1000"},       {"e1000e", "e1000"}, {"ena", "ena"},           {"enic", "enic"},
         {"gve", "gve"},           {"i40e", "i40e"},    {"iavf", "iavf"},         {"ice", "ice"},
         {"igb", "e1000"},         {"igc", "igc"},      {"ixgbe", "ixgbe"},       {"ixgbevf", "ixgbe"},
         {"mlx5_core", "mlx5"},    {"sfc", "sfc"},      {"virtio-pci", "virtio"}, {"vmxnet3", "vmxnet3"}}};
    const auto found = std::ranges::find(kNames, kernel_driver, [](const auto& pair) { return pair.first; });
    return found == kNames.end() ? "" : std::string(found->second);
}

}  // namespace penstock::host
