// SPDX-License-Identifier: Apache-2.0
// The affinity table as seen by control threads: entries are compared with the configuration in force.
#include <rte_cycles.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {
namespace {

class EntriesInForce {
 public:
    EntriesInForce(const config::Snapshot& snapshot, const pipeline::WorkerContext& context)
        : services_(snapshot.services),
          clock_(context.clock),
          rate_(context.rate),
          now_(clock_.at(context.timeline.shown(rte_rdtsc()))) {
        services_->for_each_row([&](const lb::FrontendRow& row) {
            if (row.service->has_affinity()) {
                auto& services = by_owner_[row.service->affinity_owner];
                if (std::ranges::find(services, row.service) == services.end()) {
                    services.push_back(row.service);
                }
            }
        });
        for (auto& [owner, services] : by_owner_) {
            std::ranges::sort(services, {}, [](const lb::Service* service) {
                return std::tie(service->port_name, service->protocol);
            });
        }
    }

    [[nodiscard]] std::optional<AffinityView> view(const lb::AffinityEntry& entry) const {
        const auto services = by_owner_.find(entry.key.owner);
        if (services == by_owner_.end()) {
            return std::nullopt;
        }
        for (const lb::Service* service : services->second) {
            if (auto view = view_at(*service, entry)) {
                return view;
            }
        }
        return std::nullopt;
    }

 private:
    [[nodiscard]] std::optional<AffinityView> view_at(const lb::Service& service,
                                                      const lb::AffinityEntry& entry) const {
        if (service.affinity_epoch != entry.key.epoch) {
            return std::nullopt;
        }
        const auto limit = static_cast<int32_t>(clock_.units(rate_.seconds(service.affinity_timeout_s)));
        for (const lb::BackendSet& set : service.sets) {
            const uint32_t position = set.positions.find(entry.endpoint);
            if (position != lb::EndpointPositions::kNone && set.usable[position].stay == entry.stay &&
                !entry.is_past(now_, limit)) {
                const int32_t age = units_between(entry.refreshed, now_);
                return AffinityView{service, set.usable[position], entry.key.client,
                                    clock_.to_milliseconds(age),
                                    clock_.to_milliseconds(limit - std::max(age, 0))};
            }
        }
        return std::nullopt;
    }

    std::shared_ptr<const lb::ServiceTable> services_;
    const CoarseClock& clock_;
    TscRate rate_;
    CoarseTime now_;
    // the service ports that share entries, in order
    std::unordered_map<AffinityOwner, std::vector<const lb::Service*>> by_owner_;
};

}  // namespace

void Inspector::for_each_affinity(const std::function<bool(const AffinityView&)>& visit) const {
    const EntriesInForce entries(workers_->current(), workers_->impl_->workers_.front()->context());
    workers_->impl_->affinity.for_each([&](const lb::AffinityEntry& entry) {
        const auto view = entries.view(entry);
        return !view || visit(*view);
    });
}

uint64_t Inspector::affinity_entries() const {
    return workers_->impl_->affinity.size();
}

uint64_t Inspector::affinity_entries_max() const {
    return workers_->impl_->affinity.capacity();
}

uint64_t WorkerSet::clear_affinity(const std::function<bool(const AffinityView&)>& selects) {
    const EntriesInForce entries(current(), impl_->workers_.front()->context());
    lb::AffinityTable& table = impl_->affinity;
    return table.remove_if(0, table.buckets(), [&](const lb::AffinityEntry& entry) {
        const auto view = entries.view(entry);
        return view && selects(*view);
    });
}

void WorkerSet::sweep_affinity() {
    lb::AffinityTable& table = impl_->affinity;
    const uint32_t share = table.buckets() / kAffinitySweepCalls + 1;
    const uint32_t first = impl_->affinity_swept < table.buckets() ? impl_->affinity_swept : 0;
    const uint32_t count = std::min(share, table.buckets() - first);
    const EntriesInForce entries(current(), impl_->workers_.front()->context());
    table.remove_if(first, count, [&](const lb::AffinityEntry& entry) { return !entries.view(entry); });
    impl_->affinity_swept = first + count;
}

}  // namespace penstock::worker
