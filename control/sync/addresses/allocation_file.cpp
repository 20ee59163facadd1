// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/allocation_file.hpp"

#include <algorithm>
#include <utility>

#include "control/base/whole_file.hpp"

namespace penstock::sync {
namespace {

constexpr std::string_view kHeading = "penstock-allocations 1";
constexpr size_t kAddressesMax = 2;  // one for each family

// Removes and returns the text before the first `end`; all of it without one.
std::string_view take_until(std::string_view& text, char end) {
    const size_t at = std::min(text.find(end), text.size());
    const std::string_view taken = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return taken;
}

std::unexpected<Error> corrupt(size_t line, const std::string& rule) {
    return fail(Errc::Corrupt, "line " + std::to_string(line) + ": " + rule);
}

Status parse_line(std::string_view line, size_t number, SavedAllocations& into) {
    const std::string_view service = take_until(line, ' ');
    const size_t slash = service.find('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == service.size()) {
        return corrupt(number, "must begin with namespace/name");
    }
    std::vector<IpAddr> addresses;
    while (!line.empty()) {
        auto address = IpAddr::parse(take_until(line, ' '));
        if (!address) {
            return corrupt(number, address.error().what);
        }
        addresses.push_back(*address);
    }
    if (addresses.empty() || addresses.size() > kAddressesMax) {
        return corrupt(number, "must have one or two addresses");
    }
    const kube::ObjectName name{std::string(service.substr(0, slash)),
                                std::string(service.substr(slash + 1))};
    if (!into.emplace(name, std::move(addresses)).second) {
        return corrupt(number, std::string(service) + " is repeated");
    }
    return {};
}

}  // namespace

Result<SavedAllocations> parse_allocations(std::string_view text) {
    SavedAllocations allocations;
    if (take_until(text, '\n') != kHeading) {
        return corrupt(1, "must be \"" + std::string(kHeading) + "\"");
    }
    for (size_t number = 2; !text.empty(); ++number) {
        PENSTOCK_TRY_STATUS(parse_line(take_until(text, '\n'), number, allocations));
    }
    return allocations;
}

std::string allocations_text(const SavedAllocations& allocations) {
    std::string text = std::string(kHeading) + "\n";
    for (const auto& [service, addresses] : allocations) {
        text += service.namespace_name + "/" + service.name;
        for (const IpAddr& address : addresses) {
            text += " " + address.to_string();
        }
        text += "\n";
    }
    return text;
}

Result<SavedAllocations> read_allocations(const std::string& path) {
    PENSTOCK_TRY(const auto text, read_whole_file(path, kAllocationFileBytesMax));
    if (!text) {
        return SavedAllocations();
    }
    PENSTOCK_TRY_IN(path, auto allocations, parse_allocations(*text));
    return allocations;
}

Status write_allocations(const std::string& path, const SavedAllocations& allocations) {
    return replace_file(path, allocations_text(allocations));
}

}  // namespace penstock::sync
