#include "control/gateway/affinity_epochs.hpp"

#include <algorithm>

namespace penstock::gateway {
namespace {

bool offers(const lb::Service& service, BackendId id) {
    return std::ranges::any_of(service.sets,
                               [&](const lb::BackendSet& set) { return set.positions.find(id) != lb::BackendPositions::kNone; });
}

}  // namespace

bool keeps_affinity(const model::Service& before, const model::Service& after) noexcept {
    const bool may_be_same = before.uid == after.uid || before.uid.empty() || after.uid.empty();
    return before.affinity_timeout_s != 0 && after.affinity_timeout_s != 0 && may_be_same;
}

void AffinityEpochs::apply(lb::Service& service, const model::Service& desired, const lb::Service* former,
                           const model::Service* former_desired) {
    const bool is_to_forget = forgotten_.erase(desired.key) != 0;
    service.affinity_timeout_s = desired.affinity_timeout_s;
    if (!service.has_affinity()) {
        return;
    }
    const bool keeps = former != nullptr && keeps_affinity(*former_desired, desired) && !is_to_forget;
    service.affinity_epoch = keeps ? former->affinity_epoch : ++newest_epoch_;
    for (lb::BackendSet& set : service.sets) {
        for (lb::Backend& backend : set.usable) {
            if (backend.id.value >= stays_.size()) {
                stays_.resize(backend.id.value + 1);
            }
        }
    }
    std::unordered_set<BackendId> back;  // a backend of several sets comes back once
    for (lb::BackendSet& set : service.sets) {
        for (lb::Backend& backend : set.usable) {
            uint16_t& stay = stays_[backend.id.value];
            // With a new epoch nobody has a claim to anything.
            if (keeps && !offers(*former, backend.id) && back.insert(backend.id).second) {
                stay = static_cast<uint16_t>((stay + 1) % lb::Backend::kStays);
            }
            backend.stay = stay;
        }
        set.positions = lb::BackendPositions::build(set.usable);
    }
}

}  // namespace penstock::gateway
