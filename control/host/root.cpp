// SPDX-License-Identifier: Apache-2.0
#include "control/host/root.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>

#include "dataplane/base/text.hpp"

namespace penstock::host {

namespace fs = std::filesystem;

fs::path Root::at(std::string_view path) const {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    return folder_ / path;
}

std::optional<std::string> Root::text(std::string_view path) const {
    std::error_code error;
    const fs::path file = at(path);
    if (fs::is_directory(file, error)) {
        return std::nullopt;
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return std::nullopt;
    }
    std::string content;
    std::array<char, 64 * 1024> part{};
    while (content.size() < kTextBytesMax && (stream.read(part.data(), part.size()), stream.gcount() > 0)) {
        content.append(part.data(), static_cast<size_t>(stream.gcount()));
    }
    if (stream.bad()) {
        return std::nullopt;  // sysfs refuses some files at the read
    }
    return std::string(trimmed(content));
}

std::optional<uint64_t> Root::number(std::string_view path, int base) const {
    const auto content = text(path);
    return content && !content->empty() ? whole_number<uint64_t>(*content, base) : std::nullopt;
}

std::vector<std::string> Root::names(std::string_view path) const {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator entry(at(path), error), end; !error && entry != end; entry.increment(error)) {
        found.push_back(entry->path().filename().string());
    }
    std::ranges::sort(found);
    return found;
}

std::optional<std::string> Root::link_name(std::string_view path) const {
    std::error_code error;
    const fs::path target = fs::read_symlink(at(path), error);
    return error ? std::nullopt : std::optional(target.filename().string());
}

bool Root::exists(std::string_view path) const {
    std::error_code error;
    return fs::exists(at(path), error);
}

}  // namespace penstock::host
