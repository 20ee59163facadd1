// SPDX-License-Identifier: Apache-2.0
// Model of an API server for writers of status: Services, AddressPools and one Lease, with a version for each
// object, optimistic concurrency, and the history that a watch delivers. Holds typed objects; only the status
// of Services and the Lease are converted to and from JSON. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/transport.hpp"

namespace penstock::test {

class ModelCluster {
 public:
    using Name = kube::ObjectName;

    struct Reply {
        int status = 0;
        std::string body;
    };
    // One version of one object; null: deleted. Exactly one of the two names an object.
    struct Change {
        uint64_t version = 0;
        std::optional<Name> service;
        kube::ServicePtr service_value;
        std::string pool;
        kube::AddressPoolPtr pool_value;
    };

    // ---- edits of users and other controllers ----

    void put(const kube::Service& service);
    void remove(const Name& name);
    void put_pool(const ipam::Pool& pool);
    void remove_pool(const std::string& name);

    // ---- the API ----

    // Executes a request now.
    Reply execute(const kube::Request& request);
    // Called before a PATCH of a Service is stored, with the versions before and after it.
    std::function<void(const kube::Service& before, const kube::Service& after)> on_status;

    [[nodiscard]] const kube::Service* find(const Name& name) const;
    [[nodiscard]] const std::map<Name, kube::ServiceVersion>& services() const { return services_; }
    [[nodiscard]] const std::map<std::string, kube::AddressPoolPtr>& pools() const { return pools_; }
    // Every change since the start, in order. A view that has applied the first n of them is consistent.
    [[nodiscard]] const std::vector<Change>& history() const { return history_; }
    [[nodiscard]] const std::string& holder() const { return holder_; }
    [[nodiscard]] uint64_t status_writes() const { return status_writes_; }
    [[nodiscard]] uint64_t pool_writes() const { return pool_writes_; }

 private:
    Reply execute_lease(const kube::Request& request);
    Reply patch_service(const Name& name, const std::string& body);
    Reply patch_pool(const std::string& name, const std::string& body);
    void record(const Name& name, kube::ServicePtr value);
    [[nodiscard]] std::string lease_text() const;

    uint64_t version_ = 0;
    std::map<Name, kube::ServiceVersion> services_;
    std::map<std::string, kube::AddressPoolPtr> pools_;
    std::map<std::string, uint64_t> pool_versions_;
    std::vector<Change> history_;
    uint64_t status_writes_ = 0;
    uint64_t pool_writes_ = 0;

    uint64_t lease_version_ = 0;  // 0: no Lease exists
    std::string holder_;
    int64_t lease_duration_s_ = 0;
    std::string renew_time_;
    std::string acquire_time_;
    int64_t transitions_ = 0;
};

}  // namespace penstock::test
