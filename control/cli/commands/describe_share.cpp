// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

const v1::PlannedGateway* gateway_named(const v1::ListSharesResponse& shares, const std::string& name) {
    const auto found = std::ranges::find(shares.gateways(), name, &v1::PlannedGateway::name);
    return found == shares.gateways().end() ? nullptr : &*found;
}

// "edge-1 (this gateway)", "edge-2 at 10.0.0.2:7443".
std::string gateway_text(const v1::ListSharesResponse& shares, const std::string& name) {
    if (name.empty()) {
        return "none: the plan has one gateway";
    }
    const v1::PlannedGateway* gateway = gateway_named(shares, name);
    return name == shares.gateway_name()                       ? name + " (this gateway)"
           : gateway != nullptr && !gateway->address().empty() ? name + " at " + gateway->address()
                                                               : name;
}

std::string role_here(const v1::Share& share) {
    if (share.role() == "none") {
        return "none: other gateways serve the share";
    }
    return share.role() +
           (share.held()      ? ", which has the copies and awaits penstockctl fail-back"
            : share.returns() ? std::string(", which returns: it waits for copies of connections") +
                                    (share.role() == "heir" ? " and for the return of the primary" : "")
                              : "") +
           (share.holds() ? "; its workers answer ARP and ND for the share" : "");
}

// "complete, for the last time 0.25s ago",
// "connecting, complete for the last time 1m11s ago: connection refused".
std::string channel_text(const v1::PlannedGateway& other) {
    const std::string state = other.channel().empty() ? "off" : other.channel();
    const std::string since = state == "complete" ? ", for the last time " : ", complete for the last time ";
    return state +
           (other.has_complete_age_ms() ? since + duration_text(other.complete_age_ms()) + " ago" : "") +
           (other.channel_fault().empty() ? "" : ": " + other.channel_fault());
}

// Copies of connections, if this gateway has a role in the share.
std::string copies_text(const v1::ListSharesResponse& shares, const v1::Share& share) {
    const std::string& name = share.primary() == shares.gateway_name() ? share.heir() : share.primary();
    const v1::PlannedGateway* other = share.role() == "none" ? nullptr : gateway_named(shares, name);
    if (other == nullptr) {
        return "";
    }
    const uint64_t refused =
        other->records_refused_share() + other->records_refused_full() + other->records_refused_taken();
    return indented_line("Channel", channel_text(*other)) +
           indented_line("Copies here",
                         std::to_string(share.copies()) + " of this share's connections of " + name) +
           indented_line("Copies there", std::to_string(other->copies_there()) +
                                             " of this gateway's connections at " + name +
                                             ", of all shares") +
           (refused == 0
                ? ""
                : indented_line("Refused records",
                                std::to_string(other->records_refused_share()) + " without a role, " +
                                    std::to_string(other->records_refused_full()) + " without room, " +
                                    std::to_string(other->records_refused_taken()) +
                                    " of connections that are here already, of all shares with " + name));
}

v1::ListVipsResponse addresses_of(const v1::Share& share, const v1::ListVipsResponse& vips) {
    v1::ListVipsResponse found;
    for (const v1::Vip& vip : vips.vips()) {
        if (vip.has_share() && vip.share() == share.number()) {
            *found.add_vips() = vip;
        }
    }
    return found;
}

Result<const v1::Share*> share_from(const v1::ListSharesResponse& shares, const std::string& text) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
        return fail(Errc::InvalidArgument, "share '" + text + "' must be a number, as in get shares");
    }
    if (shares.shares().empty()) {
        return fail(Errc::NotFound, "the gateway has no plan of shares (--shares)");
    }
    const auto found = std::ranges::find(shares.shares(), number, &v1::Share::number);
    if (found == shares.shares().end()) {
        return fail(Errc::NotFound, "there is no share " + text + ": the plan has the shares 0 to " +
                                        std::to_string(shares.shares_size() - 1));
    }
    return &*found;
}

Result<std::string> run_describe_share(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto shares, gateway->shares());
    PENSTOCK_TRY(const auto* const share, share_from(shares, request.arguments[0]));
    PENSTOCK_TRY(const auto vips, gateway->vips());
    if (!request.is_structured()) {
        return share_description(shares, *share, vips);
    }
    std::vector<std::pair<std::string, std::string>> members{
        {"plan_version", std::to_string(shares.plan_version()) + "\n"},
        {"gateway_name", json_quoted(shares.gateway_name()) + "\n"},
        {"share", json_text(*share)}};
    for (const auto& [role, name] : {std::pair("primary", share->primary()), {"heir", share->heir()}}) {
        if (const v1::PlannedGateway* planned = gateway_named(shares, name)) {
            members.emplace_back(role, json_text(*planned));
        }
    }
    members.emplace_back("vips", json_list(addresses_of(*share, vips).vips()));
    return structured(json_object(members), request.format);
}

}  // namespace

std::string share_description(const v1::ListSharesResponse& shares, const v1::Share& share,
                              const v1::ListVipsResponse& vips) {
    const v1::ListVipsResponse addresses = addresses_of(share, vips);
    return "Share " + std::to_string(share.number()) + "\n" +
           indented_line("Plan", "version " + std::to_string(shares.plan_version()) +
                                     (shares.fault().empty() ? "" : "; " + shares.fault())) +
           indented_line("Primary", gateway_text(shares, share.primary())) +
           indented_line("Heir", gateway_text(shares, share.heir())) +
           indented_line("Role here", role_here(share)) +
           indented_line("VIPs", list_or(share.vips(), "by the hash of the address")) +
           indented_line("SNAT addresses", list_or(share.snat(), "those of each gateway")) +
           indented_line("Served VIPs", std::to_string(share.served()) + ", announced by this gateway: " +
                                            std::to_string(share.announced())) +
           (share.strays().empty() ? "" : indented_line("Strays go to", share.strays())) +
           copies_text(shares, share) +
           (addresses.vips().empty() ? indented_line("Addresses", "none")
                                     : "  Addresses:\n" + vips_table(addresses).text(4));
}

Command describe_share() {
    return {.words = {"describe", "share"},
            .aliases = {"shares"},
            .arguments = "NUMBER",
            .arguments_min = 1,
            .arguments_max = 1,
            .options = {"output", "watch", "interval", "all-gateways"},
            .summary =
                "Show everything about one share of several gateways (--shares): roles, channel, copies of "
                "connections, addresses and their announcement",
            .run = run_describe_share};
}

}  // namespace penstock::cli
