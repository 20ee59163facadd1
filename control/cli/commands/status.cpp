// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <ctime>
#include <map>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

std::string line(const std::string& name, const std::string& value) {
    constexpr size_t kNameWidth = 15;
    return name + ":" + std::string(kNameWidth - name.size(), ' ') + value + "\n";
}

const char* origin_text(v1::Status::ConfigurationOrigin origin) {
    switch (origin) {
        case v1::Status::CONFIGURATION_ORIGIN_STREAM:
            return "from a control plane";
        case v1::Status::CONFIGURATION_ORIGIN_LAST_GOOD:
            return "from the last good file";
        default:
            return "none yet";
    }
}

std::string configuration_text(const v1::Status& status) {
    if (status.applied().version() == 0) {
        return "none yet";
    }
    return "version " + std::to_string(status.applied().version()) + " of " + status.applied().source() +
           ", " + origin_text(status.origin()) + ", " + duration_text(status.applied_age_ms()) + " ago";
}

std::string control_text(const v1::Status& status) {
    std::string text =
        status.control_connected() ? "connected" : "not connected; forwarding continues unchanged";
    if (!status.control_source().empty()) {
        text += ", " + status.control_source();
    }
    if (status.control_waiting() > 0) {
        text += ", " + std::to_string(status.control_waiting()) + " waiting for the lead";
    }
    return text;
}

std::string identity_text(const v1::Identity& identity) {
    std::string text = identity.gateway_name();
    if (identity.mode() == v1::Identity::MODE_NODE) {
        text += ", node mode on " + identity.node_name();
    } else if (identity.mode() == v1::Identity::MODE_EXTERNAL) {
        text += ", external mode";
    }
    for (const auto& [key, value] :
         std::map<std::string, std::string>(identity.labels().begin(), identity.labels().end())) {
        text += ", " + key + "=" + value;
    }
    return text;
}

std::string drain_text(const v1::Status& status) {
    std::string text = "health checks answer 503 until undrain";
    if (const std::string progress = drain_progress(status); !progress.empty()) {
        text += "; " + progress;
    }
    if (status.has_stop_left_ms()) {
        text += "; penstockd stops in " + duration_text(status.stop_left_ms()) + " at the latest";
    }
    return text;
}

std::string tables_text(const v1::Tables& tables) {
    if (tables.file().empty()) {
        return "end with penstockd: " + tables.why_not();
    }
    std::string text = tables.file() + (tables.in_hugepages() ? ", in hugepages" : ", in ordinary memory");
    if (!tables.nothing_adopted().empty()) {
        text += "; nothing was adopted: " + tables.nothing_adopted();
    } else {
        text += "; " + std::to_string(tables.adopted()) + " connections adopted in " +
                std::to_string((tables.adoption_us() + 999) / 1000) + " ms";
        if (tables.has_converted_from()) {
            text += ", converted from table layout " + std::to_string(tables.converted_from());
        }
        std::string lost;
        for (const auto& each : tables.lost()) {
            lost += (lost.empty() ? "; lost: " : ", ") + each.reason() + " " + std::to_string(each.count());
        }
        text += lost;
    }
    for (const std::string& file : tables.refused_files()) {
        text += "; " + file;
    }
    for (const std::string* remark : {&tables.remark(), &tables.name_error()}) {
        text += remark->empty() ? "" : "; " + *remark;
    }
    return text;
}

std::string flow_records_text(const v1::FlowRecords& records) {
    std::string text = std::to_string(records.queued()) + " records; " + std::to_string(records.logged()) +
                       " written to files, " + std::to_string(records.sent()) + " sent to the collector";
    std::string lost;
    for (const auto& each : records.lost()) {
        lost += (lost.empty() ? "; lost: " : ", ") + each.reason() + " " + std::to_string(each.records());
    }
    return text + lost + (records.fault().empty() ? "" : "; now: " + records.fault());
}

std::string shares_text(const v1::SharesSummary& shares) {
    std::string copies;
    if (!shares.channel().empty() && shares.channel() != "off") {
        copies = ", copies " + shares.channel() + " (" + std::to_string(shares.copies()) + " held)";
        copies += shares.channel_fault().empty() ? "" : ": " + shares.channel_fault();
    }
    return "plan version " + std::to_string(shares.plan_version()) + ", primary of " +
           std::to_string(shares.primary_of()) + ", heir of " + std::to_string(shares.heir_of()) + copies +
           (shares.awaiting_fail_back() == 0
                ? ""
                : "; " + std::to_string(shares.awaiting_fail_back()) + " await penstockctl fail-back") +
           (shares.fault().empty() ? "" : "; " + shares.fault());
}

std::string bfd_text(const v1::Bfd& bfd) {
    return std::to_string(bfd.up()) + " of " + std::to_string(bfd.sessions()) + " sessions are up" +
           (bfd.fault().empty() ? "" : "; no connection to bfdd: " + bfd.fault()) +
           (bfd.withheld() ? "; packets are withheld: a loop has stalled" : "");
}

// "expires 2027-01-31 12:00 UTC, in 12d3h".
std::string expiry_text(const v1::Certificate::Validity& validity) {
    const std::string left =
        duration_text(uint64_t{1'000} * static_cast<uint64_t>(std::abs(validity.left_s())));
    const std::time_t expires = validity.expires_s();
    std::tm parts{};
    ::gmtime_r(&expires, &parts);
    char date[sizeof("2027-01-31 12:00")]{};
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M", &parts);
    return (validity.left_s() < 0 ? "expired " : "expires ") + std::string(date) + " UTC, " +
           (validity.left_s() < 0 ? left + " ago" : "in " + left);
}

std::string certificate_text(const v1::Certificate& certificate) {
    std::string text = certificate.subject() + " " + expiry_text(certificate.own());
    if (certificate.own().renewal_is_late()) {
        text += "; warning: renew it";
    }
    if (certificate.authority().renewal_is_late()) {
        text += "; warning: the client CA " + expiry_text(certificate.authority());
    }
    return text + (certificate.error().empty()
                       ? ""
                       : "; warning: newer files are not in use: " + certificate.error());
}

std::string health_text(const v1::Status& status) {
    std::string text;
    for (const std::string& reason : status.not_well()) {
        text += (text.empty() ? "not ready: " : "; ") + reason;
    }
    return text.empty() ? "ready" : text;
}

// For probes and scripts: exit code 1 while the gateway is not ready.
Status judge(Gateway* gateway, const Request&) {
    PENSTOCK_TRY(const auto status, gateway->status());
    return status.not_well().empty() ? Status()
                                     : fail(Errc::Exhausted, "the gateway is " + health_text(status));
}

Result<std::string> run_status(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto status, gateway->status());
    return request.is_structured() ? structured(json_text(status), request.format) : status_text(status);
}

}  // namespace

std::string drain_progress(const v1::Status& status) {
    std::string text;
    if (status.drain_step() == "depreferred") {
        text = "VIP routes have metric 900, and are deleted in " +
               duration_text(status.depreferred_left_ms()) + " at the latest";
    } else if (status.drain_step() == "withdrawn") {
        text = status.vip_presence() == "off" ? "connections are open" : "VIPs are withdrawn";
    } else if (status.drain_step() == "done") {
        text = "no connection is open";
    }
    std::string flows;
    for (const v1::OpenFlows& open : status.open_flows()) {
        flows += (flows.empty() ? "; open: " : ", ") + open.service() + " " + std::to_string(open.flows());
    }
    return text.empty() ? text : text + flows;
}

std::string status_text(const v1::Status& status) {
    return line("Gateway", identity_text(status.identity())) +
           line("Software", "penstockd " + status.identity().software_version()) +
           line("Up for", duration_text(status.uptime_ms())) +
           line("Configuration", configuration_text(status)) + line("Health", health_text(status)) +
           (status.drained() ? line("Drained", drain_text(status)) : std::string()) +
           (status.vips_withheld().empty() ? std::string() : line("VIPs withheld", status.vips_withheld())) +
           (status.save_error().empty() ? std::string()
                                        : line("Not saved", "for " + duration_text(status.save_failing_ms()) +
                                                                ": " + status.save_error())) +
           (status.has_tables() ? line("Tables", tables_text(status.tables())) : std::string()) +
           (status.has_upgrade() ? line("Upgrade", upgrade_text(status.upgrade())) : std::string()) +
           (status.has_flow_records() ? line("Flow records", flow_records_text(status.flow_records()))
                                      : std::string()) +
           (status.has_bfd() ? line("BFD", bfd_text(status.bfd())) : std::string()) +
           (status.has_shares() ? line("Shares", shares_text(status.shares())) : std::string()) +
           (status.has_certificate() ? line("Certificate", certificate_text(status.certificate()))
                                     : std::string()) +
           line("Control plane", control_text(status)) +
           line("Generation", std::to_string(status.generation())) +
           line("Serving", std::to_string(status.services()) + " service ports, " +
                               std::to_string(status.backends()) + " backends") +
           line(
               "Connections",
               std::to_string(status.connections()) + " of " + std::to_string(status.connections_max()) +
                   (status.has_open_connections() ? ", " + std::to_string(status.open_connections()) + " open"
                                                  : "")) +
           line("Running", std::to_string(status.workers()) + " workers, " + std::to_string(status.ports()) +
                               " NIC ports") +
           line("Memory", status.memory()) + line("Log level", status.log_level());
}

Command status() {
    return {.words = {"status"},
            .options = {"output", "watch", "interval", "all-gateways"},
            .summary =
                "Show identity, configuration and load of the gateway. Exit code 1 while its health checks "
                "answer 503",
            .run = run_status,
            .judge = judge};
}

}  // namespace penstock::cli
