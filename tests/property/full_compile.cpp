// SPDX-License-Identifier: Apache-2.0
#include "tests/property/full_compile.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "control/gateway/compile/port_addresses.hpp"

namespace penstock::gateway {
namespace {

using lb::FrontendClass;

bool is_vip_class(FrontendClass cls) {
    return cls == FrontendClass::LoadBalancerIp || cls == FrontendClass::ExternalIp;
}

// Compares all fields that determine which backend a flow gets. Names for display, notices and frontends do
// not.
bool same_backends(const model::Service& a, const model::Service& b) {
    const auto same_endpoint = [](const model::Endpoint& x, const model::Endpoint& y) {
        return std::tie(x.address, x.port, x.weight) == std::tie(y.address, y.port, y.weight);
    };
    return a.scheduler == b.scheduler &&
           std::ranges::equal(a.sets, b.sets, [&](const model::BackendSet& x, const model::BackendSet& y) {
               return x.source == y.source && x.when_empty == y.when_empty &&
                      std::ranges::equal(x.endpoints, y.endpoints, same_endpoint);
           });
}

std::set<std::pair<IpAddr, L4Port>> places_of(const model::Service& service) {
    std::set<std::pair<IpAddr, L4Port>> places;
    for (const auto& set : service.sets) {
        for (const auto& endpoint : set.endpoints) {
            places.emplace(endpoint.address, endpoint.port);
        }
    }
    return places;
}

class FullCompiler {
 public:
    FullCompiler(const CompileInput& input, const FullCompiled& previous, const lb::ServiceTable* in_workers,
                 IdMap& ids)
        : input_(input), previous_(previous), in_workers_(in_workers), ids_(ids) {}

    // Whether another run could grant a refused port: capacity was insufficient, and ids have been released
    // since.
    [[nodiscard]] bool is_worth_repeating() const noexcept { return short_of_ids_ && released_; }

    Result<FullCompiled> run() {
        // Former owners first: they keep their ids and rows when capacity is insufficient.
        for (const bool was_in_force : {true, false}) {
            for (const auto& [key, desired] : input_.desired) {
                if (previous_.services.contains(key) == was_in_force) {
                    consider(key, desired);
                }
            }
        }
        // The remains of refused ports come last, so that they cannot keep a tuple from its new owner.
        for (const auto& [key, refusal] : out_.refusals) {
            if (const auto in_force = previous_.services.find(key); in_force != previous_.services.end()) {
                program_leftover(in_force->first, in_force->second);
            }
        }
        auto table = build_table();
        if (!table) {
            return std::unexpected(std::move(table.error()));
        }
        out_.table = std::move(*table);
        release_unused_ids();
        return std::move(out_);
    }

 private:
    void consider(const model::ServiceKey& key, const std::shared_ptr<const model::Service>& desired) {
        for (const auto& frontend : desired->frontends) {
            const FrontendKey claim(frontend, key.protocol);
            if (const auto owner = claims_.find(claim); owner != claims_.end()) {
                refuse(key, model::kFrontendConflict,
                       claim.to_string() + " belongs to service " + owner->second->to_string());
                return;
            }
        }
        const auto former = previous_.services.find(key);
        std::shared_ptr<const lb::Service> service;
        if (former != previous_.services.end() &&
            (former->second.desired == desired || same_backends(*former->second.desired, *desired))) {
            service = former->second.service;
        } else if (service = build_service(key, *desired); service == nullptr) {
            return;
        }
        Programmed programmed{desired, std::move(service), nullptr};
        if (former != previous_.services.end() &&
            former->second.desired->source_ranges == desired->source_ranges &&
            former->second.desired->source_ranges_deny == desired->source_ranges_deny) {
            programmed.filter = former->second.filter;
        }
        if (programmed.filter == nullptr &&
            std::ranges::any_of(desired->frontends, &model::Frontend::filtered)) {
            programmed.filter = std::make_shared<const lb::SourceFilter>(
                lb::SourceFilter{true, desired->source_ranges, desired->source_ranges_deny});
        }
        for (const auto& frontend : desired->frontends) {
            place(key, frontend, programmed);
        }
        out_.services.emplace(key, std::move(programmed));
    }

    // The former version of a refused service port, without the tuples that another port owns now.
    void program_leftover(const model::ServiceKey& key, const Programmed& programmed) {
        for (const auto& frontend : programmed.desired->frontends) {
            if (!claims_.contains(FrontendKey(frontend, key.protocol))) {
                place(key, frontend, programmed);
            }
        }
        out_.services.emplace(key, programmed);
    }

    void place(const model::ServiceKey& key, const model::Frontend& frontend, const Programmed& programmed) {
        claims_.emplace(FrontendKey(frontend, key.protocol), &key);
        lb::Frontend row{.address = frontend.address,
                         .port = frontend.port,
                         .protocol = key.protocol,
                         .cls = frontend.cls,
                         .set = frontend.set,
                         .service = programmed.service,
                         .filter = frontend.filtered ? programmed.filter : nullptr,
                         .inside_set = frontend.inside_set};
        if (frontend.cls == FrontendClass::NodePort) {
            node_ports_.emplace_back(frontend.family, std::move(row));
            return;
        }
        if (is_vip_class(frontend.cls)) {
            vips_.insert(frontend.address);
        }
        frontends_.push_back(std::move(row));
    }

    // Null if it was refused. Allocates the ids of its new parts; ids of removed parts are released at the
    // end.
    std::shared_ptr<const lb::Service> build_service(const model::ServiceKey& key,
                                                     const model::Service& desired) {
        if (!ids_.services.find(key).has_value() && ids_.services.room() == 0) {
            short_of_ids_ = true;
            refuse(key, model::kCapacityExceeded, "there is no room for another service port");
            return nullptr;
        }
        const auto places = places_of(desired);
        const auto former_id = ids_.services.find(key);
        const auto missing = static_cast<size_t>(std::ranges::count_if(places, [&](const auto& place) {
            return !former_id || !ids_.backends.find(BackendKey{*former_id, place.first, place.second});
        }));
        if (missing > ids_.backends.room()) {
            short_of_ids_ = true;
            refuse(key, model::kCapacityExceeded,
                   "there is no room for " + std::to_string(missing) + " more endpoints, only for " +
                       std::to_string(ids_.backends.room()));
            return nullptr;
        }
        auto service = std::make_shared<lb::Service>();
        service->id = *ids_.services.take(key);
        service->namespace_name = key.namespace_name;
        service->name = key.name;
        service->port_name = key.port_name;
        service->protocol = key.protocol;
        service->scheduler = desired.scheduler;
        for (const auto& place : places) {
            ids_.backends.take({service->id, place.first, place.second});
        }
        for (const auto& set : desired.sets) {
            service->sets.push_back(build_set(service->id, set, desired.scheduler));
        }
        return service;
    }

    lb::BackendSet build_set(ServiceId service, const model::BackendSet& desired,
                             lb::SchedulerKind scheduler) const {
        lb::BackendSet set{.usable = {},
                           .ring = {},
                           .order = {},
                           .positions = {},
                           .by_id = {},
                           .source = desired.source,
                           .when_empty = desired.when_empty};
        set.usable.reserve(desired.endpoints.size());
        for (const auto& endpoint : desired.endpoints) {
            if (endpoint.weight > 0) {  // weight 0: no new flows, existing ones are kept (EP-018)
                const auto id = ids_.backends.find({service, endpoint.address, endpoint.port});
                set.usable.push_back({*id, endpoint.address, endpoint.port, endpoint.weight});
            }
        }
        lb::prepare(set, scheduler);
        return set;
    }

    void refuse(const model::ServiceKey& key, std::string_view reason, const std::string& why) {
        out_.refusals.emplace(key, model::Refusal{reason, "service " + key.to_string() + ": " + why});
    }

    Result<std::shared_ptr<const lb::ServiceTable>> build_table() {
        const auto addresses = node_port_addresses(input_.node_ports, input_.addresses, vips_);
        for (const auto& [family, row] : node_ports_) {
            for (const IpAddr& address : addresses) {
                if (address.family() == family) {
                    frontends_.push_back(row);
                    frontends_.back().address = address;
                }
            }
        }
        std::vector<std::shared_ptr<const lb::Service>> services;
        services.reserve(out_.services.size());
        for (const auto& [key, programmed] : out_.services) {
            services.push_back(programmed.service);
        }
        return lb::ServiceTable::build(frontends_, services, in_workers_);
    }

    // Only service ports with a changed object can have lost a backend, so unchanged ones are skipped.
    void release_unused_ids() {
        const auto release = [&](ServiceId service, const std::set<std::pair<IpAddr, L4Port>>& before,
                                 const std::set<std::pair<IpAddr, L4Port>>& after) {
            for (const auto& [address, port] : before) {
                if (!after.contains({address, port})) {
                    if (const auto id = ids_.backends.find({service, address, port})) {
                        ids_.backends.release(*id);
                        released_ = true;
                    }
                }
            }
        };
        for (const auto& [key, former] : previous_.services) {
            const auto now = out_.services.find(key);
            if (now == out_.services.end()) {
                release(former.service->id, places_of(*former.desired), {});
                ids_.services.release(former.service->id);
                released_ = true;
            } else if (now->second.service != former.service) {
                release(former.service->id, places_of(*former.desired), places_of(*now->second.desired));
            }
        }
    }

    const CompileInput& input_;
    const FullCompiled& previous_;
    const lb::ServiceTable* in_workers_;
    IdMap& ids_;
    FullCompiled out_;
    // The keys belong to the input or to previous_.
    std::unordered_map<FrontendKey, const model::ServiceKey*, FrontendKeyHash> claims_;
    std::set<IpAddr> vips_;
    std::vector<lb::Frontend> frontends_;
    std::vector<std::pair<IpFamily, lb::Frontend>> node_ports_;  // without addresses yet
    bool short_of_ids_ = false;
    bool released_ = false;
};

}  // namespace

Result<FullCompiled> full_compile(const CompileInput& input, const FullCompiled& previous, IdMap& ids) {
    FullCompiler first(input, previous, previous.table.get(), ids);
    auto compiled = first.run();
    if (compiled && first.is_worth_repeating()) {
        return FullCompiler(input, *compiled, previous.table.get(), ids).run();
    }
    return compiled;
}

}  // namespace penstock::gateway
