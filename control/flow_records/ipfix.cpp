// SPDX-License-Identifier: Apache-2.0
#include "control/flow_records/ipfix.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::flow_records {
namespace {

using pipeline::FlowEnd;
using pipeline::FlowRecord;

constexpr uint16_t kVersion = 10;
constexpr size_t kHeaderBytes = 16;
constexpr uint16_t kTemplateSet = 2;
constexpr uint16_t kFirstTemplate = 256;
constexpr uint16_t kVariable = 65'535;    // length of an element of variable length
constexpr uint16_t kEnterprise = 0x8000;  // bit of an element's number
constexpr uint32_t kReversePen = 29'305;  // elements of the reverse direction (RFC 5103, 6.1)
constexpr size_t kNameBytesMax = 254;     // variable length in one byte

// Information elements of the IANA registry. The value of `reverse` is that of the packets from the backend.
struct Element {
    uint16_t id;
    uint16_t bytes;
    bool reverse = false;
};
constexpr Element kOctets{1, 8}, kPackets{2, 8};  // octetDeltaCount, packetDeltaCount
constexpr Element kReverseOctets{1, 8, true}, kReversePackets{2, 8, true};
constexpr Element kProtocol{4, 1};                             // protocolIdentifier
constexpr Element kSourcePort{7, 2}, kDestinationPort{11, 2};  // source-, destinationTransportPort
constexpr Element kSourceV4{8, 4}, kDestinationV4{12, 4};      // source-, destinationIPv4Address
constexpr Element kSourceV6{27, 16}, kDestinationV6{28, 16};   // source-, destinationIPv6Address
constexpr Element kApplication{96, kVariable};                 // applicationName
constexpr Element kEndReason{136, 1};                          // flowEndReason
constexpr Element kFlowId{148, 8};                             // flowId
constexpr Element kStart{152, 8}, kEnd{153, 8};                // flowStart-, flowEndMilliseconds
constexpr Element kPostSourceV4{225, 4},
    kPostDestinationV4{226, 4};  // postNATSource-, -DestinationIPv4Address
constexpr Element kPostSourcePort{227, 2}, kPostDestinationPort{228, 2};  // postNAPT...TransportPort
constexpr Element kNatEvent{230, 1};                                      // natEvent
constexpr Element kPostSourceV6{281, 16}, kPostDestinationV6{282, 16};    // postNATSource-, ...IPv6Address
constexpr Element kTime{323, 8};                                          // observationTimeMilliseconds

constexpr size_t kElementsMax = 20;
struct Template {
    std::array<Element, kElementsMax> elements{};
    size_t count = 0;
    constexpr void add(Element element) { elements[count++] = element; }
};

// The families of the two tuples, and the event, determine the template.
struct Shape {
    bool client_is_v6 = false;
    bool backend_is_v6 = false;
    bool is_end = false;
};
constexpr uint16_t kTemplates = 8;

constexpr uint16_t template_id(const Shape& shape) {
    return static_cast<uint16_t>(kFirstTemplate + (shape.client_is_v6 ? 1 : 0) +
                                 (shape.backend_is_v6 ? 2 : 0) + (shape.is_end ? 4 : 0));
}
constexpr Shape shape_of(uint16_t id) {
    const int bits = id - kFirstTemplate;
    return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
}

// The order of the values in append_values().
constexpr Template template_of(const Shape& shape) {
    Template out;
    out.add(kTime);
    out.add(kNatEvent);
    out.add(kProtocol);
    out.add(kFlowId);
    out.add(shape.client_is_v6 ? kSourceV6 : kSourceV4);
    out.add(shape.client_is_v6 ? kDestinationV6 : kDestinationV4);
    out.add(kSourcePort);
    out.add(kDestinationPort);
    out.add(shape.backend_is_v6 ? kPostSourceV6 : kPostSourceV4);
    out.add(shape.backend_is_v6 ? kPostDestinationV6 : kPostDestinationV4);
    out.add(kPostSourcePort);
    out.add(kPostDestinationPort);
    out.add(kStart);
    if (shape.is_end) {
        out.add(kEnd);
        out.add(kEndReason);
        out.add(kOctets);
        out.add(kPackets);
        out.add(kReverseOctets);
        out.add(kReversePackets);
    }
    out.add(kApplication);
    return out;
}

// natEvent (RFC 8158, 5.2; IANA): 4 and 5 are the session events of NAT44, 6 and 7 those of NAT64, used for
// both directions of translation between the families. There are none for NAT66: 1 and 2 are the general
// events of a translation.
constexpr uint8_t nat_event(const Shape& shape) {
    const int create = shape.client_is_v6 != shape.backend_is_v6 ? 6 : shape.client_is_v6 ? 1 : 4;
    return static_cast<uint8_t>(create + (shape.is_end ? 1 : 0));
}

// flowEndReason (RFC 5102, 5.11.3).
constexpr uint8_t end_reason(FlowEnd end) {
    constexpr uint8_t kIdleTimeout = 1, kEndDetected = 3, kForced = 4, kLackOfResources = 5;
    switch (end) {
        case FlowEnd::Closed:
        case FlowEnd::Reset:
            return kEndDetected;
        case FlowEnd::Idle:
        case FlowEnd::Unanswered:
            return kIdleTimeout;
        case FlowEnd::Ended:
        case FlowEnd::Replaced:
            return kForced;
        case FlowEnd::Evicted:
        case FlowEnd::Reclaimed:
            return kLackOfResources;
    }
    return kForced;
}

template <typename Number>
void append(Message& out, Number value) {
    for (size_t i = sizeof(Number); i > 0; --i) {
        out.push_back(static_cast<uint8_t>(value >> (8 * (i - 1))));
    }
}

void append(Message& out, const IpAddr& address, bool is_v6) {
    const auto& bytes = address.bytes();
    out.insert(out.end(), bytes.begin() + (is_v6 ? 0 : 12), bytes.end());
}

void put(Message& out, size_t at, uint16_t value) {
    out[at] = static_cast<uint8_t>(value >> 8);
    out[at + 1] = static_cast<uint8_t>(value);
}

Message begin_message(uint32_t domain) {
    Message out(kHeaderBytes);
    put(out, 0, kVersion);
    put(out, 12, static_cast<uint16_t>(domain >> 16));
    put(out, 14, static_cast<uint16_t>(domain));
    return out;
}

void complete(Message& message, uint32_t now_s, uint32_t sequence) {
    put(message, 2, static_cast<uint16_t>(message.size()));
    put(message, 4, static_cast<uint16_t>(now_s >> 16));
    put(message, 6, static_cast<uint16_t>(now_s));
    put(message, 8, static_cast<uint16_t>(sequence >> 16));
    put(message, 10, static_cast<uint16_t>(sequence));
}

// "default/web:http", or "default/web".
std::string application_of(const ServiceFacts& service) {
    std::string name = service.name.empty() ? std::string() : service.namespace_name + "/" + service.name;
    if (!service.port_name.empty()) {
        name += ":" + service.port_name;
    }
    name.resize(std::min(name.size(), kNameBytesMax));
    return name;
}

// Unique for one process and for 2^32 connections of one worker.
uint64_t flow_number(const FlowRecord& record, const Origin& origin) {
    return uint64_t{record.worker.value} << 56 | uint64_t{origin.started_s & 0xff'ffff} << 32 | record.life;
}

void append_values(Message& out, const Event& event, const Origin& origin, const Shape& shape) {
    const FlowRecord& record = event.flow.record;
    append(out, static_cast<uint64_t>(event.flow.at_ms));
    append(out, nat_event(shape));
    append(out, static_cast<uint8_t>(record.forward.protocol));
    append(out, flow_number(record, origin));
    append(out, record.forward.source, shape.client_is_v6);
    append(out, record.forward.destination, shape.client_is_v6);
    append(out, record.forward.source_port);
    append(out, record.forward.destination_port);
    append(out, record.reverse.destination, shape.backend_is_v6);
    append(out, record.reverse.source, shape.backend_is_v6);
    append(out, record.reverse.destination_port);
    append(out, record.reverse.source_port);
    append(out, static_cast<uint64_t>(event.flow.started_ms));
    if (shape.is_end) {
        append(out, static_cast<uint64_t>(event.flow.last_ms));
        append(out, end_reason(record.end));
        for (const pipeline::FlowCount& passed : record.passed) {
            append(out, passed.bytes);
            append(out, passed.packets);
        }
    }
    const std::string application = application_of(event.service);
    append(out, static_cast<uint8_t>(application.size()));
    out.insert(out.end(), application.begin(), application.end());
}

}  // namespace

IpfixEncoder::IpfixEncoder(uint32_t domain, size_t message_bytes_max)
    : domain_(domain), message_bytes_max_(message_bytes_max), message_(begin_message(domain)) {
    PENSTOCK_CHECK(message_bytes_max >= kMessageBytesMin);
}

Message IpfixEncoder::templates(uint32_t now_s) const {
    Message out = begin_message(domain_);
    append(out, kTemplateSet);
    append(out, uint16_t{0});  // the length of the set, below
    for (uint16_t id = kFirstTemplate; id < kFirstTemplate + kTemplates; ++id) {
        const Template fields = template_of(shape_of(id));
        append(out, id);
        append(out, static_cast<uint16_t>(fields.count));
        for (const Element& element : std::span(fields.elements).first(fields.count)) {
            append(out, static_cast<uint16_t>(element.id | (element.reverse ? kEnterprise : 0)));
            append(out, element.bytes);
            if (element.reverse) {
                append(out, kReversePen);
            }
        }
    }
    put(out, kHeaderBytes + 2, static_cast<uint16_t>(out.size() - kHeaderBytes));
    complete(out, now_s, sequence_);
    PENSTOCK_CHECK(out.size() <= kMessageBytesMin);
    return out;
}

void IpfixEncoder::begin_set(uint16_t template_id) {
    if (set_id_ == template_id) {
        return;
    }
    set_id_ = template_id;
    set_begin_ = message_.size();
    append(message_, template_id);
    append(message_, uint16_t{0});
}

std::optional<Message> IpfixEncoder::add(const Event& event, const Origin& origin, uint32_t now_s) {
    const FlowRecord& record = event.flow.record;
    const Shape shape{!record.forward.source.is_v4(), !record.reverse.source.is_v4(), event.is_end()};
    const uint16_t id = template_id(shape);
    Message values;
    append_values(values, event, origin, shape);
    constexpr size_t kSetHeaderBytes = 4;
    std::optional<Message> full;
    if (message_.size() + (set_id_ == id ? 0 : kSetHeaderBytes) + values.size() > message_bytes_max_) {
        full = finish(now_s);
    }
    begin_set(id);
    message_.insert(message_.end(), values.begin(), values.end());
    put(message_, set_begin_ + 2, static_cast<uint16_t>(message_.size() - set_begin_));
    ++records_;
    return full;
}

std::optional<Message> IpfixEncoder::finish(uint32_t now_s) {
    if (records_ == 0) {
        return std::nullopt;
    }
    complete(message_, now_s, sequence_);
    sequence_ += std::exchange(records_, 0);
    set_id_ = 0;
    return std::exchange(message_, begin_message(domain_));
}

}  // namespace penstock::flow_records
