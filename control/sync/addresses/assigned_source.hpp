// SPDX-License-Identifier: Apache-2.0
// A folder of manifests with address pools (--address-pools): its LoadBalancer Services get addresses as in a
// cluster, and readers see them in status.loadBalancer.ingress. Without an API server, a file keeps them
// (allocation_file.hpp): it is written before a reader sees a new address, so a crash gives none out twice.
//
//     folder -> changes ---.
//     pools  -> PoolWatch --+-> AddressAssignment -> allocation file -> changes with addresses -> readers
//
// A Service that shows an ingress in its manifest and gets no address keeps that ingress.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/sync/addresses/address_assignment.hpp"
#include "control/sync/addresses/address_status.hpp"
#include "control/sync/addresses/allocation_file.hpp"
#include "control/sync/pool_watch.hpp"
#include "control/sync/source.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

class AssignedSource final : public Source {
 public:
    struct Settings {
        std::unique_ptr<Source> objects;
        std::filesystem::path pools;
        std::string allocation_file;
        AddressAssignment::Settings assignment;
    };
    // Error: the pools cannot be watched, or the allocation file is damaged.
    [[nodiscard]] static Result<std::unique_ptr<AssignedSource>> open(Settings settings);
    ~AssignedSource() override;

    [[nodiscard]] bool wait(int stop_descriptor) override;
    // Without new addresses while the file cannot be written: an address that is not saved is not used.
    [[nodiscard]] std::optional<kube::Changes> take_changes() override;
    [[nodiscard]] kube::SourceStatus status() const override;
    // Any thread.
    [[nodiscard]] AddressStatus address_status() const;
    // Reads the pools now (SIGHUP). Any thread.
    void reload() const { pool_watch_->reload(); }

 private:
    AssignedSource(Settings settings, SavedAllocations saved, int wake_descriptor, int either_descriptor);
    void take_pools(kube::Changes& changes);
    void claim_saved(kube::Changes& changes) const;
    void hold_for_unreadable(kube::Changes& changes);
    [[nodiscard]] std::vector<kube::ObjectName> save();
    [[nodiscard]] kube::ServicePtr with_addresses(const kube::ObjectName& name,
                                                  const kube::ServicePtr& service) const;
    void report(const kube::ObjectName& name);
    void publish();

    Settings settings_;
    const int wake_descriptor_;    // eventfd: the pools have changed
    const int either_descriptor_;  // epoll: wake_descriptor_ or the stop descriptor
    int stop_descriptor_ = -1;     // in either_descriptor_
    AddressAssignment assignment_;
    SavedAllocations saved_;                                 // as in the file
    std::map<kube::ObjectName, kube::ServicePtr> services_;  // as in the manifests
    kube::Changes unsent_;                                   // not passed on yet
    std::set<kube::ObjectName> held_;  // saved Services without an object, see hold_for_unreadable()
    bool objects_arrived_ = false, has_sent_ = false;
    std::map<kube::ObjectName, std::string> reported_;
    std::string pools_refused_, save_error_;

    mutable std::mutex mutex_;
    kube::Changes pools_;                    // guarded by mutex_; reported by pool_watch_
    AddressStatus status_;                   // guarded by mutex_
    std::unique_ptr<PoolWatch> pool_watch_;  // last: its thread uses the above
};

}  // namespace penstock::sync
