// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

// "3/256"; "" if the pool has no addresses of the family.
std::string usage_text(const v1::AddressCounts& counts) {
    return counts.total() == 0 && counts.used() == 0
               ? ""
               : count_text(counts.used()) + "/" + count_text(counts.total());
}

std::string free_text(const v1::AddressCounts& counts) {
    return usage_text(counts).empty() ? "" : count_text(counts.free());
}

// What differs from an ordinary pool: "disabled,internal".
std::string flags_text(const v1::AddressPool& pool) {
    const bool is_restricted =
        !pool.namespaces().empty() || pool.has_namespace_selector() || pool.has_service_selector();
    std::vector<std::string> flags;
    for (const auto& [is_set, flag] : {std::pair{pool.disabled(), "disabled"},
                                       {pool.internal(), "internal"},
                                       {pool.enforce(), "enforce"},
                                       {is_restricted, "restricted"},
                                       {!pool.auto_assign(), "on-request"},
                                       {pool.avoid_buggy_ips(), "avoid-buggy-ips"},
                                       {pool.reassign(), "reassign"}}) {
        if (is_set) {
            flags.emplace_back(flag);
        }
    }
    return list_text(flags, flags.size());
}

std::string leader_text(const v1::ListPoolsResponse& pools) {
    if (!pools.has_leader()) {
        return "not elected (folder of manifests)";
    }
    const v1::AddressLeader& leader = pools.leader();
    return (leader.holder().empty() ? "none" : leader.holder()) +
           (leader.is_leader() ? " (this process)" : "");
}

Result<std::string> run_get_pools(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto pools, gateway->pools());
    if (request.is_structured()) {
        return structured(json_text(pools), request.format);
    }
    // Scripts that omit the header read rows only.
    return pools_table(pools, request.is_wide()) + (request.no_headers ? "" : "\n" + pools_footer(pools));
}

}  // namespace

std::string pools_table(const v1::ListPoolsResponse& pools, bool wide) {
    constexpr size_t kRangesShown = 3;
    std::vector<Table::Column> columns{{"NAME"}, {"ADDRESSES"}, {"IPV4-USED", true}, {"IPV6-USED", true}};
    if (wide) {
        columns.insert(columns.end(), {{"IPV4-FREE", true},
                                       {"IPV6-FREE", true},
                                       {"RESERVED", true},
                                       {"PRIORITY", true},
                                       {"NAMESPACES"}});
    }
    columns.push_back({"FLAGS"});
    Table table(std::move(columns));
    for (const v1::AddressPool& pool : pools.pools()) {
        const std::vector<std::string> ranges(pool.ranges().begin(), pool.ranges().end());
        std::vector<std::string> cells{pool.name(), list_text(ranges, wide ? ranges.size() : kRangesShown),
                                       usage_text(pool.ipv4()), usage_text(pool.ipv6())};
        if (wide) {
            const std::vector<std::string> namespaces(pool.namespaces().begin(), pool.namespaces().end());
            cells.insert(
                cells.end(),
                {free_text(pool.ipv4()), free_text(pool.ipv6()), std::to_string(pool.reservations_size()),
                 std::to_string(pool.priority()), list_text(namespaces, namespaces.size())});
        }
        cells.push_back(flags_text(pool));
        table.add(std::move(cells));
    }
    return table.text();
}

std::string pools_footer(const v1::ListPoolsResponse& pools) {
    return "Phase:   " + pools.phase() + "\n" +  //
           "Leader:  " + leader_text(pools) + "\n" +
           (pools.refused().empty()
                ? ""
                : "Refused: " + pools.refused() + " (the previous pools stay in force)\n");
}

Command get_pools() {
    return {.words = {"get", "pools"},
            .aliases = {"pool"},
            .options = {"output", "no-headers", "watch", "interval"},
            .summary = "List address pools of penstock-sync: usage, flags, leader, refused changes",
            .program = Program::PenstockSync,
            .run = run_get_pools};
}

}  // namespace penstock::cli
