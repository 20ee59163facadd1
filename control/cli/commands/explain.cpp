// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

// The missing part of --src or --dst; empty if complete.
std::string missing_of(const std::string& option, const v1::SocketAddress& socket) {
    if (socket.address().empty()) {
        return "--" + option + " is missing: IP:PORT, or [IPV6]:PORT";
    }
    if (socket.port() != 0) {
        return "";
    }
    const bool is_v6 = socket.address().find(':') != std::string::npos;
    return "--" + option + " " + socket.address() + ": the port is missing: write " +
           (is_v6 ? "[ADDRESS]:PORT" : socket.address() + ":PORT");
}

Result<std::string> run_explain(Gateway* gateway, const Request& request) {
    if (request.protocol == v1::PROTOCOL_UNSPECIFIED) {
        return fail(Errc::InvalidArgument, "explain: --proto is missing: tcp, udp or sctp");
    }
    for (const std::string& missing :
         {missing_of("src", request.source), missing_of("dst", request.destination)}) {
        if (!missing.empty()) {
            return fail(Errc::InvalidArgument, "explain: " + missing);
        }
    }
    v1::ExplainRequest packet;
    packet.set_protocol(request.protocol);
    *packet.mutable_source() = request.source;
    *packet.mutable_destination() = request.destination;
    if (request.nic_port) {
        packet.set_port(*request.nic_port);
    }
    packet.set_queue(request.queue);
    packet.set_tcp_not_syn(request.not_syn);
    PENSTOCK_TRY(const auto explanation, gateway->explain(packet));
    return request.is_structured() ? structured(json_text(explanation), request.format)
                                   : explanation_text(packet, explanation);
}

}  // namespace

std::string explanation_text(const v1::ExplainRequest& request, const v1::Explanation& explanation) {
    const char* packet_text = "";
    if (request.protocol() == v1::PROTOCOL_TCP) {
        packet_text = request.tcp_not_syn() ? " ACK" : " SYN";
    } else if (request.protocol() == v1::PROTOCOL_SCTP) {
        packet_text = " INIT";
    }
    std::string text = text_of(request.protocol()) + packet_text + " " + text_of(request.source()) + " -> " +
                       text_of(request.destination()) + ", arriving on port " +
                       std::to_string(explanation.arrival_port()) + ", queue " +
                       std::to_string(request.queue()) + "\n\n";
    Table table({{"STAGE"}, {"FINDING"}});
    for (const v1::ExplainStep& step : explanation.steps()) {
        table.add({step.stage(), step.finding()});
    }
    text += table.text() + "\nVerdict: " + explanation.verdict();
    text += explanation.drop_reason().empty() ? "\n" : " (" + explanation.drop_reason() + ")\n";
    if (explanation.has_source_after() || explanation.has_destination_after()) {
        // Port 0: the SNAT port is chosen only when the connection is created.
        const bool port_is_open = explanation.source_after().port() == 0;
        const std::string source = port_is_open
                                       ? host_text(explanation.source_after().address()) + ":(free port)"
                                       : text_of(explanation.source_after());
        text += "Leaves as: " + source + " -> " + text_of(explanation.destination_after()) + "\n";
    }
    if (!explanation.egress_twin().empty()) {
        text +=
            "Through: " + explanation.egress_twin() + " to " + explanation.next_hop() + " (" +
            (explanation.next_hop_mac().empty() ? "MAC address not known yet" : explanation.next_hop_mac()) +
            ")\n";
    }
    return text;
}

Command explain() {
    return {
        .words = {"explain"},
        .options = {"proto", "src", "dst", "port", "queue", "not-syn", "output", "all-gateways"},
        .summary =
            "Show step by step how a TCP SYN or ACK, a UDP datagram or an SCTP INIT would be handled, and "
            "why, without side effects; ICMP messages and fragments are not covered",
        .run = run_explain};
}

}  // namespace penstock::cli
