// SPDX-License-Identifier: Apache-2.0
// A cluster in a few lines for the tests of the allocator: pools, Services, and their status.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/ipam/allocator.hpp"
#include "control/ipam/pool_rules.hpp"

namespace penstock::ipam::testing {

inline IpAddr ip(const std::string& text) {
    return IpAddr::parse(text).value();
}

// A prefix, a range "FIRST-LAST", or one address. Without the rules of the schema, so that lists which break
// them can be made.
inline AddressRange range_of(const std::string& text) {
    if (const size_t dash = text.find('-'); dash != std::string::npos) {
        return {.first = ip(text.substr(0, dash)), .last = ip(text.substr(dash + 1))};
    }
    if (text.find('/') == std::string::npos) {
        return {.first = ip(text), .last = ip(text)};
    }
    const Prefix prefix = Prefix::parse(text).value();
    auto last = prefix.address().bytes();
    const size_t fixed = 128 - prefix.address().bits() + prefix.length();
    for (size_t bit = fixed; bit < 128; ++bit) {
        last[bit / 8] = static_cast<uint8_t>(last[bit / 8] | 0x80U >> bit % 8);
    }
    return {.first = prefix.address(),
            .last = prefix.address().is_v4() ? IpAddr::v4(last[12], last[13], last[14], last[15])
                                             : IpAddr::v6(last)};
}

inline Pool pool(const std::string& name, const std::vector<std::string>& ranges) {
    Pool result{.name = name};
    for (const std::string& range : ranges) {
        result.ranges.push_back(range_of(range));
    }
    return result;
}

class Cluster {
 public:
    explicit Cluster(std::vector<Pool> pools) { set_pools(std::move(pools)); }

    void set_pools(std::vector<Pool> pools) { pending_.pools = validate(std::move(pools), {}).value(); }
    void set_labels(const std::string& namespace_name, annotations::Labels labels) {
        pending_.namespaces[namespace_name] = labels;
        labels_[namespace_name] = std::move(labels);
    }

    // A Service of type LoadBalancer for IPv4 with port 80; "default/NAME", or "NAMESPACE/NAME". Later
    // Services are younger.
    kube::Service& add(const std::string& path) {
        kube::Service& service = at(path);
        service.meta.uid = "uid-" + path;
        const std::string second = std::to_string(10 + services_.size());
        service.meta.creation_timestamp = "2026-01-01T00:00:" + second + "Z";
        service.type = "LoadBalancer";
        service.load_balancer_class = "penstock.io/gateway";
        service.ip_families = {"IPv4"};
        service.ip_family_policy = "SingleStack";
        service.ports = {{.name = "", .protocol = "TCP", .port = 80}};
        return service;
    }
    // An existing Service, to be changed.
    kube::Service& at(const std::string& path) {
        const kube::ObjectName name = name_of(path);
        kube::Service& service = services_[name];
        service.meta.namespace_name = name.namespace_name;
        service.meta.name = name.name;
        dirty_.push_back(name);
        return service;
    }
    kube::Service& add_dual(const std::string& path, const std::string& policy) {
        kube::Service& service = add(path);
        service.ip_families = {"IPv4", "IPv6"};
        service.ip_family_policy = policy;
        return service;
    }
    void remove(const std::string& path) {
        services_.erase(name_of(path));
        dirty_.push_back(name_of(path));
    }
    // The object of the Service cannot be read; these are the addresses in its status. None: it can.
    void hold(const std::string& path, const std::vector<std::string>& addresses) {
        std::vector<IpAddr>& held = held_[name_of(path)];
        held.clear();
        for (const std::string& address : addresses) {
            held.push_back(ip(address));
        }
        pending_.held = held_;
    }
    static void annotate(kube::Service& service, const std::string& key, const std::string& value) {
        service.meta.annotations["penstock.io/" + key] = value;
    }
    // Status as a controller writes it.
    static void show(kube::Service& service, const std::vector<std::string>& addresses, bool ours) {
        service.ingress.clear();
        for (const std::string& address : addresses) {
            service.ingress.push_back({.ip = address});
        }
        service.conditions.clear();
        if (ours) {
            service.conditions = kube::marker("True");
        }
    }

    // Applies all changes since the last call. Returns the names of the Services that changed.
    std::vector<std::string> apply() {
        for (const kube::ObjectName& name : dirty_) {
            const auto found = services_.find(name);
            pending_.services[name] =
                found == services_.end() ? nullptr : std::make_shared<const kube::Service>(found->second);
        }
        dirty_.clear();
        std::vector<std::string> changed;
        for (const kube::ObjectName& name : allocator_.apply(pending_)) {
            changed.push_back(name.namespace_name + "/" + name.name);
        }
        if (pending_.pools) {
            pools_ = *pending_.pools;
        }
        pending_ = {};
        return changed;
    }

    // Writes every allocation to the status of its Service.
    void echo() {
        apply();
        for (auto& [name, service] : services_) {
            if (const Allocation* allocation = allocator_.find(name)) {
                std::vector<std::string> addresses;
                for (const AllocatedAddress& entry : allocation->addresses) {
                    addresses.push_back(entry.address.to_string());
                }
                show(service, addresses, !addresses.empty());
                dirty_.push_back(name);
            }
        }
        apply();
    }
    // A new allocator that gets everything in one batch.
    void restart() {
        apply();
        allocator_ = Allocator(policy_);
        pending_.pools = pools_;
        pending_.held = held_;
        for (const auto& [name, labels] : labels_) {
            pending_.namespaces[name] = labels;
        }
        for (const auto& [name, service] : services_) {
            dirty_.push_back(name);
        }
        apply();
    }

    // "192.0.2.1(edge) 2001:db8::1(edge)", "Reason", both, or "-" for a Service that is not owned. Applies.
    std::string of(const std::string& path) {
        apply();
        const Allocation* allocation = allocator_.find(name_of(path));
        if (allocation == nullptr) {
            return "-";
        }
        std::string text;
        for (const AllocatedAddress& entry : allocation->addresses) {
            text += (text.empty() ? "" : " ") + entry.address.to_string() + "(" + entry.pool + ")";
        }
        if (allocation->refusal) {
            text += (text.empty() ? "" : " ") + std::string(to_string(allocation->refusal->reason));
        }
        return text;
    }
    std::string message(const std::string& path) {
        apply();
        const Allocation* allocation = allocator_.find(name_of(path));
        return allocation != nullptr && allocation->refusal ? allocation->refusal->message : "";
    }
    const Allocator& allocator() {
        apply();
        return allocator_;
    }

    static kube::ObjectName name_of(const std::string& path) {
        const size_t slash = path.find('/');
        return slash == std::string::npos ? kube::ObjectName{.namespace_name = "default", .name = path}
                                          : kube::ObjectName{.namespace_name = path.substr(0, slash),
                                                             .name = path.substr(slash + 1)};
    }

 private:
    semantics::Policy policy_;
    Allocator allocator_{policy_};
    std::map<kube::ObjectName, kube::Service> services_;
    std::map<std::string, annotations::Labels> labels_;
    std::map<kube::ObjectName, std::vector<IpAddr>> held_;
    std::vector<Pool> pools_;
    std::vector<kube::ObjectName> dirty_;
    Changes pending_;
};

}  // namespace penstock::ipam::testing
