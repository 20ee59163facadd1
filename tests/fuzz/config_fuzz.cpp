// SPDX-License-Identifier: Apache-2.0
// Any bytes as each input that configures a gateway: the INI file, a --port, and a message of the state
// stream (as protobuf text, so that the corpus is readable). The first line selects the kind. Each result
// satisfies the invariants of its type. A valid service port is unchanged by encoding and decoding, and
// compiling a state does not affect objects outside it.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <string>
#include <string_view>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/options/options.hpp"
#include "control/rpc/convert.hpp"
#include "control/rpc/state_message.hpp"
#include "dataplane/base/check.hpp"

namespace penstock {
namespace {

void check_port(const gateway::PortOption& port) {
    PENSTOCK_CHECK(!port.device.empty() && !port.twin.empty() && port.twin.size() < 16);
    PENSTOCK_CHECK(port.mtu >= gateway::kMtuMin && port.mtu <= gateway::kMtuMax);
    for (const auto& address : port.addresses) {
        PENSTOCK_CHECK(address.prefix_length <= address.address.bits());
    }
}

void fuzz_ini(const std::string& text) {
    const auto options = gateway::Options::parse_ini(text);
    if (!options) {
        PENSTOCK_CHECK(!options.error().what.empty());
        return;
    }
    PENSTOCK_CHECK(!options->ports.empty() && !options->listen.empty() &&
                   !options->identity.gateway_name.empty());
    for (const auto& port : options->ports) {
        check_port(port);
    }
    PENSTOCK_CHECK(options->snat_ports.first >= 1 && options->snat_ports.first <= options->snat_ports.last);
    for (const auto& address : options->listen) {
        // A gateway listens on TCP only with certificates.
        PENSTOCK_CHECK(address.is_unix() || (!options->tls_cert.empty() && !options->tls_key.empty() &&
                                             !options->tls_client_ca.empty()));
    }
}

void fuzz_port(const std::string& text) {
    const auto port = gateway::PortOption::parse(text);
    if (port) {
        check_port(*port);
    } else {
        PENSTOCK_CHECK(port.error().code == Errc::InvalidArgument && !port.error().what.empty());
    }
}

class Silence final : public google::protobuf::io::ErrorCollector {
 public:
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
    void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

// Only the neighbour has this address, for any input of the fuzzer.
model::Service neighbour() {
    model::Service service{.key = {"fuzz", "neighbour", "", Protocol::Tcp}, .service_port = 1};
    service.sets.push_back({.endpoints = {{IpAddr::v4(198, 18, 0, 1), 1, 1, "", ""}}});
    service.frontends.push_back(
        {lb::FrontendClass::ExternalIp, IpAddr::v4(198, 18, 0, 2), IpFamily::V4, 1, 0, false});
    return service;
}

void fuzz_state(const std::string& text) {
    v1::StateMessage message;
    google::protobuf::TextFormat::Parser parser;
    Silence silence;
    parser.RecordErrorsTo(&silence);
    parser.SetRecursionLimit(20);
    if (!parser.ParseFromString(text, &message)) {
        return;
    }
    rpc::StateParts parts;
    auto whole = parts.add(message);
    // The message announces another part: send the same one again, so that each service port is present
    // twice.
    if (whole && !*whole) {
        message.has_full() ? message.mutable_full()->clear_more() : message.mutable_delta()->clear_more();
        whole = parts.add(message);
    }
    if (!whole) {
        PENSTOCK_CHECK(whole.error().code == Errc::InvalidArgument);
        return;
    }
    PENSTOCK_CHECK(*whole);
    const rpc::CheckedMessage& checked = **whole;
    gateway::DesiredServices desired;
    const auto next_door = std::make_shared<const model::Service>(neighbour());
    for (const auto& service : checked.update.services) {
        const auto again = rpc::from_proto(rpc::to_proto(service));
        PENSTOCK_CHECK(again && *again == service);
        desired.insert_or_assign(service.key, std::make_shared<const model::Service>(service));
    }
    for (const auto& refusal : checked.refused) {
        PENSTOCK_CHECK(refusal.outcome() == v1::ServiceResult::OUTCOME_REFUSED && !refusal.why().empty());
    }
    desired.insert_or_assign(next_door->key, next_door);

    // The neighbour is in force first. The tables are small, so that they become full.
    gateway::Compiler compiler(gateway::IdMap(4, 8));
    const auto& ids = compiler.ids();
    const model::NodePortAddresses rule =
        checked.update.environment.value_or(model::Environment{}).node_ports;
    const std::vector<model::PortAddress> addresses = {{"pen0", IpAddr::v4(192, 0, 2, 1), 24, true}};
    std::vector<model::ServiceKey> keys;
    for (const auto& [key, service] : desired) {
        keys.push_back(key);
    }
    gateway::DesiredServices alone;
    alone.insert_or_assign(next_door->key, next_door);
    compiler.run({alone, rule, addresses}, keys);
    const auto before = compiler.compiled();
    compiler.run({desired, rule, addresses}, keys);
    const auto after = compiler.compiled();
    const auto* row = after->table->find(IpAddr::v4(198, 18, 0, 2), 1, Protocol::Tcp);
    PENSTOCK_CHECK(row != nullptr && row->service->id == before->services.at(next_door->key).service->id);
    PENSTOCK_CHECK(after->services.size() + after->refusals.size() == desired.size());
    for (const auto& [key, programmed] : after->services) {
        PENSTOCK_CHECK(ids.services.find(key) == programmed.service->id);
        for (const auto& set : programmed.service->sets) {
            for (const auto& backend : set.usable) {
                PENSTOCK_CHECK(ids.backends.is_live(backend.id) && backend.weight > 0);
            }
        }
    }
    compiler.run({{}, rule, addresses}, keys);
    PENSTOCK_CHECK(compiler.compiled()->services.empty() && ids.services.live() == 0 &&
                   ids.backends.live() == 0);
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t line = input.find('\n');
    if (line == std::string_view::npos) {
        return 0;
    }
    const std::string_view kind = input.substr(0, line);
    const std::string rest(input.substr(line + 1));
    if (kind == "ini") {
        penstock::fuzz_ini(rest);
    } else if (kind == "port") {
        penstock::fuzz_port(rest);
    } else if (kind == "state") {
        penstock::fuzz_state(rest);
    }
    return 0;
}
