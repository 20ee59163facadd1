// SPDX-License-Identifier: Apache-2.0
#include "control/flow_records/json_line.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "control/base/log_tags.hpp"
#include "control/log/log.hpp"

namespace penstock::flow_records {
namespace {

using conn::Direction;
using pipeline::FlowRecord;

class Object {
 public:
    explicit Object(std::string& out) : out_(out) { out_ += '{'; }
    void end() { out_ += "}\n"; }
    void text(std::string_view name, std::string_view value) {
        key(name);
        out_ += '"' + log::json_escaped(value) + '"';
    }
    void number(std::string_view name, int64_t value) {
        key(name);
        out_ += std::to_string(value);
    }
    void number(std::string_view name, uint64_t value) {
        key(name);
        out_ += std::to_string(value);
    }
    // An object of its own.
    void tags(std::string_view name, std::string_view list) {
        key(name);
        out_ += '{';
        for (const std::string_view pair : split(list, ',')) {
            const auto [tag, value] = split_log_tag(pair);
            text(tag, value);
        }
        out_ += '}';
    }
    void flag(std::string_view name) {
        key(name);
        out_ += "true";
    }
    void place(std::string_view address_name, std::string_view port_name, const IpAddr& address,
               L4Port port) {
        text(address_name, address.to_string());
        number(port_name, uint64_t{port});
    }

 private:
    void key(std::string_view name) {
        if (out_.back() != '{') {
            out_ += ',';
        }
        out_ += '"';
        out_ += name;
        out_ += "\":";
    }
    std::string& out_;
};

std::string flow_id(const FlowRecord& record, const Origin& origin) {
    std::array<char, 40> text{};
    const int length = std::snprintf(text.data(), text.size(), "%08x-%u-%u", origin.started_s,
                                     unsigned{record.worker.value}, record.life);
    return {text.data(), static_cast<size_t>(length)};
}

std::string_view protocol_name(Protocol protocol) {
    switch (protocol) {
        case Protocol::Tcp:
            return "tcp";
        case Protocol::Udp:
            return "udp";
        case Protocol::Sctp:
            return "sctp";
    }
    return "";
}

}  // namespace

std::string rfc3339_ms(int64_t ms_since_1970) {
    const auto seconds = static_cast<time_t>(ms_since_1970 / 1000);
    tm utc{};
    gmtime_r(&seconds, &utc);
    std::array<char, 32> date{};
    const size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
    std::array<char, 8> rest{};
    std::snprintf(rest.data(), rest.size(), ".%03dZ", static_cast<int>(ms_since_1970 % 1000));
    return std::string(date.data(), length) + rest.data();
}

void append_json_line(std::string& out, const Event& event, const Origin& origin) {
    const FlowRecord& record = event.flow.record;
    Object object(out);
    object.text("event", event.is_end() ? "end" : "begin");
    object.text("time", rfc3339_ms(event.flow.at_ms));
    object.text("gateway", origin.gateway);
    object.text("flow", flow_id(record, origin));
    object.text("namespace", event.service.namespace_name);
    object.text("service", event.service.name);
    object.text("port", event.service.port_name);
    object.text("protocol", protocol_name(record.forward.protocol));
    object.place("client_address", "client_port", record.forward.source, record.forward.source_port);
    object.place("frontend_address", "frontend_port", record.forward.destination,
                 record.forward.destination_port);
    object.place("source_address", "source_port", record.reverse.destination,
                 record.reverse.destination_port);
    object.place("backend_address", "backend_port", record.reverse.source, record.reverse.source_port);
    object.text("start", rfc3339_ms(event.flow.started_ms));
    if (origin.one_in > 1) {
        object.number("sampled_one_in", uint64_t{origin.one_in});
    }
    if (record.is_adopted) {
        object.flag("adopted");
    }
    if (!event.service.tags.empty()) {
        object.tags("tags", event.service.tags);
    }
    if (event.is_end()) {
        object.text("last", rfc3339_ms(event.flow.last_ms));
        object.number("duration_ms", std::max<int64_t>(event.flow.last_ms - event.flow.started_ms, 0));
        object.text("reason", pipeline::to_string(record.end));
        const auto& [forward, reverse] = record.passed;
        object.number("forward_packets", forward.packets);
        object.number("forward_bytes", forward.bytes);
        object.number("reverse_packets", reverse.packets);
        object.number("reverse_bytes", reverse.bytes);
    }
    object.end();
}

}  // namespace penstock::flow_records
