// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/share_families.hpp"

#include <string>
#include <utility>

#include "control/metrics/family.hpp"

namespace penstock::metrics {
namespace {

void add_channel_families(const ShareReading& shares, std::vector<prometheus::MetricFamily>& out) {
    out.push_back(single(gauge("penstock_share_copies_max",
                               "room for copies of other gateways' connections: IPv4 ones, or half as many "
                               "others"),
                         static_cast<double>(shares.copies_max)));
    out.push_back(
        single(gauge("penstock_share_copies_taken",
                     "copies that workers have taken over, and whose connections are in the tables"),
               static_cast<double>(shares.copies_taken)));
    prometheus::MetricFamily copies =
        gauge("penstock_share_copies", "copies held of another gateway's connections");
    prometheus::MetricFamily states =
        gauge("penstock_share_channel_state", "1: the state of the copies from another gateway");
    prometheus::MetricFamily complete =
        gauge("penstock_share_copies_complete",
              "1 while every connection of the other gateway that is older than --share-age has a copy here");
    prometheus::MetricFamily ages =
        gauge("penstock_share_copies_age_seconds", "time since the copies were complete for the last time");
    prometheus::MetricFamily received =
        counter("penstock_share_records_received_total", "records of copies from another gateway");
    prometheus::MetricFamily refused =
        counter("penstock_share_records_refused_total", "of these, refused records");
    prometheus::MetricFamily sent =
        counter("penstock_share_records_sent_total", "records of copies to another gateway");
    for (const ShareReading::Channel& channel : shares.channels) {
        const Labels gateway{{"gateway", channel.gateway}};
        add(copies, gateway, static_cast<double>(channel.held));
        add(states, {{"gateway", channel.gateway}, {"state", channel.state}}, 1);
        if (channel.is_on) {
            add(complete, gateway, channel.is_complete ? 1 : 0);
        }
        if (channel.complete_age_s) {
            add(ages, gateway, *channel.complete_age_s);
        }
        add(received, gateway, static_cast<double>(channel.received));
        for (const auto& [reason, records] : channel.refused) {
            add(refused, {{"gateway", channel.gateway}, {"reason", reason}}, static_cast<double>(records));
        }
        add(sent, gateway, static_cast<double>(channel.sent));
    }
    for (prometheus::MetricFamily* family :
         {&copies, &states, &complete, &ages, &received, &refused, &sent}) {
        out.push_back(std::move(*family));
    }
}

}  // namespace

void add_share_families(const ShareReading& shares, std::vector<prometheus::MetricFamily>& out) {
    out.push_back(single(gauge("penstock_shares_plan_version", "version of the plan of shares in force"),
                         static_cast<double>(shares.plan_version)));
    out.push_back(
        single(gauge("penstock_shares_plan_fault",
                     "1 while the file of the plan of shares is not in force, or the plan is not saved"),
               shares.has_fault ? 1 : 0));
    prometheus::MetricFamily roles = gauge("penstock_share_role", "1: the role of this gateway in a share");
    prometheus::MetricFamily holds =
        gauge("penstock_share_holds",
              "1 while the workers of this gateway answer ARP and ND for the addresses of a share");
    for (const ShareReading::Share& share : shares.shares) {
        add(roles, {{"share", std::to_string(share.number)}, {"role", share.role}}, 1);
        if (share.holds) {
            add(holds, {{"share", std::to_string(share.number)}}, *share.holds ? 1 : 0);
        }
    }
    out.push_back(std::move(roles));
    out.push_back(std::move(holds));
    out.push_back(single(gauge("penstock_shares_awaiting_fail_back",
                               "shares that this gateway could serve as the primary, and that wait for "
                               "penstockctl fail-back"),
                         static_cast<double>(shares.awaiting_fail_back)));
    prometheus::MetricFamily targets =
        gauge("penstock_share_stray_target",
              "1 while packets of another gateway's shares that arrive here are forwarded to it");
    for (const auto& [gateway, is_reached] : shares.stray_targets) {
        add(targets, {{"gateway", gateway}}, is_reached ? 1 : 0);
    }
    out.push_back(std::move(targets));
    add_channel_families(shares, out);
}

}  // namespace penstock::metrics
