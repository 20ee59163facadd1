// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/ingress_guard.hpp"

#include <nftables/libnftables.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>

namespace penstock::drivers {
namespace {

// nft's message has several lines with a drawing of the position. The first line is the error.
std::string first_line(const char* text) {
    const std::string all = text == nullptr ? "" : text;
    const std::string line = all.substr(0, all.find('\n'));
    return line.empty() ? "no reason given" : line;
}

}  // namespace

std::string guard_table_name(const std::string& interface, int pid) {
    std::string name = "penstock_" + std::to_string(pid) + "_" + interface;
    for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
            c = '_';
        }
    }
    return name;
}

Result<std::unique_ptr<IngressGuard>> IngressGuard::install(const std::string& interface) {
    nft_ctx* const nft = nft_ctx_new(NFT_CTX_DEFAULT);
    if (nft == nullptr) {
        return fail(Errc::Unsupported,
                    "ingress guard on " + interface + ": cannot open a netlink socket to nftables");
    }
    nft_ctx_buffer_output(nft);
    nft_ctx_buffer_error(nft);
    // From here on the destructor cleans up.
    std::unique_ptr<IngressGuard> guard(new IngressGuard(nft, guard_table_name(interface, getpid())));
    // One command at a time: nft 1.0.6 refuses a chain and a rule in one batch for netdev tables.
    const std::string commands[] = {
        "add table netdev " + guard->table_ + " { flags owner; }",
        "add chain netdev " + guard->table_ + " ingress { type filter hook ingress device \"" + interface +
            "\" priority 0; policy accept; }",
        "add rule netdev " + guard->table_ + " ingress counter drop",
    };
    for (const std::string& command : commands) {
        if (nft_run_cmd_from_buffer(nft, command.c_str()) != 0) {
            const Errc code = geteuid() == 0 ? Errc::Unsupported : Errc::PermissionDenied;
            return fail(code, "ingress guard on " + interface + ": " +
                                  first_line(nft_ctx_get_error_buffer(nft)) + " (" + command + ")");
        }
    }
    return guard;
}

IngressGuard::~IngressGuard() {
    nft_run_cmd_from_buffer(nft_, ("delete table netdev " + table_).c_str());
    nft_ctx_free(nft_);
}

}  // namespace penstock::drivers
