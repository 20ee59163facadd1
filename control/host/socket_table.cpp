// SPDX-License-Identifier: Apache-2.0
#include "control/host/socket_table.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

std::string_view next_word(std::string_view& line) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

// The address is printed as 32-bit words, each a number in this host's byte order.
std::optional<IpAddr> address_of(std::string_view digits, IpFamily family) {
    constexpr size_t kWordDigits = 8;
    std::array<uint8_t, 16> bytes{};
    const size_t words = family == IpFamily::V4 ? 1 : 4;
    if (digits.size() != words * kWordDigits) {
        return std::nullopt;
    }
    for (size_t i = 0; i < words; ++i) {
        const auto word = whole_number<uint32_t>(digits.substr(i * kWordDigits, kWordDigits), 16);
        if (!word) {
            return std::nullopt;
        }
        std::memcpy(bytes.data() + i * sizeof(uint32_t), &*word, sizeof(uint32_t));
    }
    if (family == IpFamily::V4) {
        return IpAddr::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    constexpr std::array<uint8_t, 12> kMapped{
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // an IPv6 socket bound to an IPv4 address
    if (std::memcmp(bytes.data(), kMapped.data(), kMapped.size()) == 0) {
        return IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    return IpAddr::v6(bytes);
}

bool is_pid(const std::string& name) {
    return whole_number<uint32_t>(name).has_value();
}

}  // namespace

//    0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 ...
//   sl  local         remote        state queues          timer       retransmits uid timeout inode
std::optional<SocketRow> parse_socket_row(std::string_view line, IpFamily family) {
    next_word(line);
    const std::string_view local = next_word(line);
    next_word(line);
    const auto state = whole_number<uint32_t>(next_word(line), 16);
    const size_t colon = local.find(':');
    if (!state || colon == std::string_view::npos) {
        return std::nullopt;
    }
    const auto address = address_of(local.substr(0, colon), family);
    const auto port = whole_number<L4Port>(local.substr(colon + 1), 16);
    if (!address || port.value_or(0) == 0) {
        return std::nullopt;
    }
    for (int skipped = 0; skipped < 5; ++skipped) {  // queues to timeout
        next_word(line);
    }
    return SocketRow{*address, *port, *state, whole_number<uint64_t>(next_word(line)).value_or(0)};
}

std::optional<std::vector<SocketRow>> listening_sockets(const Root& root) {
    std::optional<std::vector<SocketRow>> found;
    for (const auto& [file, family] :
         {std::pair("/proc/self/net/tcp", IpFamily::V4), std::pair("/proc/self/net/tcp6", IpFamily::V6)}) {
        const auto text = root.text(file);
        if (!text) {
            continue;
        }
        if (!found) {
            found.emplace();
        }
        for (const std::string_view line : split(*text, '\n')) {
            if (const auto row = parse_socket_row(line, family); row && row->state == kTcpListen) {
                found->push_back(*row);
            }
        }
    }
    return found;
}

// 0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/penstock/penstockd.sock
// num               refs     protocol flags    type st inode path
std::optional<uint64_t> unix_socket_at(const Root& root, std::string_view path) {
    const std::string table = root.text("/proc/self/net/unix").value_or("");
    constexpr std::string_view kListening = "00010000";  // SO_ACCEPTCON; connections have the same path
    for (std::string_view line : split(table, '\n')) {
        next_word(line);
        next_word(line);
        next_word(line);
        const std::string_view flags = next_word(line);
        next_word(line);
        next_word(line);
        const auto inode = whole_number<uint64_t>(next_word(line));
        if (inode && flags == kListening && trimmed(line) == path) {
            return inode;
        }
    }
    return std::nullopt;
}

std::optional<Process> owner_of_socket(const Root& root, uint64_t inode) {
    const std::string wanted = "socket:[" + std::to_string(inode) + "]";
    for (const std::string& pid : root.names("/proc")) {
        if (!is_pid(pid)) {
            continue;
        }
        const std::string folder = "/proc/" + pid + "/fd";
        for (const std::string& descriptor : root.names(folder)) {
            if (root.link_name(folder + "/" + descriptor) == wanted) {
                return Process{pid, root.text("/proc/" + pid + "/comm").value_or("")};
            }
        }
    }
    return std::nullopt;
}

std::optional<Process> find_process(const Root& root, std::string_view name,
                                    const std::function<bool(const std::string& pid)>& accepts) {
    for (const std::string& pid : root.names("/proc")) {
        if (is_pid(pid) && root.text("/proc/" + pid + "/comm") == name && (!accepts || accepts(pid))) {
            return Process{pid, std::string(name)};
        }
    }
    return std::nullopt;
}

}  // namespace penstock::host
