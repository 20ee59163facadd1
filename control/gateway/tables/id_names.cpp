// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/id_names.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/hash.hpp"

namespace penstock::gateway {
namespace {

// Of the record with `check` 0; never 0 itself. Kind and position of the record are part of the key.
template <typename Record>
uint32_t record_check(uint32_t position, Record record) {
    record.check = 0;
    const HashKey key{sizeof(Record), position};
    return static_cast<uint32_t>(siphash13(key, load<std::array<uint64_t, sizeof(Record) / 8>>(&record)) | 1);
}

}  // namespace

std::optional<ServiceRecord> record_of(ServiceId at, const NamedService& service) {
    const std::array<std::string_view, 4> parts{service.key.namespace_name, service.key.name,
                                                service.key.port_name, service.uid};
    ServiceRecord record{};
    record.affinity_owner = service.affinity_owner.value;
    record.affinity_epoch = service.affinity_epoch;
    record.protocol = static_cast<uint8_t>(service.key.protocol);
    size_t used = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].size() > record.text.size() - used) {
            return std::nullopt;
        }
        std::ranges::copy(parts[i], record.text.data() + used);
        record.lengths[i] = static_cast<uint8_t>(parts[i].size());
        used += parts[i].size();
    }
    record.check = record_check(at.value, record);
    return record;
}

EndpointRecord record_of(BackendId at, const NamedEndpoint& endpoint) {
    EndpointRecord record{.check = 0,
                          .service = endpoint.service.value,
                          .endpoint = endpoint.endpoint.value,
                          .stay = endpoint.stay,
                          .port = endpoint.port,
                          .address = endpoint.address.bytes()};
    record.check = record_check(at.value, record);
    return record;
}

std::optional<NamedService> read_record(ServiceId at, const ServiceRecord& record) {
    const auto protocol = static_cast<Protocol>(record.protocol);
    size_t length = 0;
    for (const uint8_t part : record.lengths) {
        length += part;
    }
    if (record.check != record_check(at.value, record) || length > record.text.size() ||
        (protocol != Protocol::Tcp && protocol != Protocol::Udp && protocol != Protocol::Sctp)) {
        return std::nullopt;
    }
    const char* next = record.text.data();
    const auto part = [&](size_t i) {
        return std::string(std::exchange(next, next + record.lengths[i]), record.lengths[i]);
    };
    NamedService service;
    service.key.namespace_name = part(0);
    service.key.name = part(1);
    service.key.port_name = part(2);
    service.key.protocol = protocol;
    service.uid = InternedText(part(3));
    service.affinity_owner = AffinityOwner{record.affinity_owner};
    service.affinity_epoch = record.affinity_epoch;
    return service;
}

std::optional<NamedEndpoint> read_record(BackendId at, const EndpointRecord& record) {
    if (record.check != record_check(at.value, record)) {
        return std::nullopt;
    }
    return NamedEndpoint{.service = ServiceId{record.service},
                         .endpoint = EndpointId{record.endpoint},
                         .stay = record.stay,
                         .port = record.port,
                         .address = IpAddr::v6(record.address)};
}

}  // namespace penstock::gateway
