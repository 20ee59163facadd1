// Ids for service ports and backends that stay the same over configurations, so that flows, counters and scheduler state survive a change.
// A freed id is given out again only when no fresh one is left, the one freed longest ago first; until then whoever comes back gets its old
// id, and a listing can still name the backend that a draining flow belongs to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::gateway {

// Dense ids below `capacity` for keys of one kind. Not thread-safe.
template <typename Key, typename IdType>
class IdPool {
 public:
    explicit IdPool(uint32_t capacity) : capacity_(capacity) {}

    [[nodiscard]] std::optional<IdType> find(const Key& key) const {
        const auto found = ids_.find(key);
        return found != ids_.end() && slots_[found->second].live ? std::optional(IdType{found->second}) : std::nullopt;
    }
    // Ids in use now.
    [[nodiscard]] uint32_t live() const noexcept { return live_; }
    // Keys that can still be added.
    [[nodiscard]] uint32_t room() const noexcept { return capacity_ - live_; }

    // The key's own id, its former one, a fresh one, or the one freed longest ago; empty where all are in use.
    std::optional<IdType> take(const Key& key) {
        if (const auto known = ids_.find(key); known != ids_.end()) {
            Slot& slot = slots_[known->second];
            live_ += slot.live ? 0 : 1;
            slot.live = true;
            return IdType{known->second};
        }
        uint32_t number = static_cast<uint32_t>(slots_.size());
        if (number < capacity_) {
            slots_.emplace_back();
        } else if (const auto freed = oldest_freed()) {
            number = *freed;
            ids_.erase(slots_[number].place);
        } else {
            return std::nullopt;
        }
        slots_[number].place = ids_.emplace(key, number).first;
        slots_[number].live = true;
        ++live_;
        return IdType{number};
    }
    void release(IdType id) {
        Slot& slot = slots_[id.value];
        PENSTOCK_CHECK(slot.live);
        slot.live = false;
        slot.freed_as = ++frees_;
        freed_.emplace_back(id.value, slot.freed_as);
        --live_;
    }

    // Whom the id belongs or last belonged to; null for one never given out.
    [[nodiscard]] const Key* key_of(IdType id) const noexcept {
        return id.value < slots_.size() ? &slots_[id.value].place->first : nullptr;
    }
    [[nodiscard]] bool is_live(IdType id) const noexcept { return id.value < slots_.size() && slots_[id.value].live; }
    // Ids given out so far, live or not, are 0 to size() - 1.
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(slots_.size()); }

 private:
    struct Slot {
        typename std::map<Key, uint32_t>::const_iterator place;
        bool live = false;
        uint64_t freed_as = 0;  // tells this stay in freed_ from earlier ones
    };

    std::optional<uint32_t> oldest_freed() {
        while (!freed_.empty()) {
            const auto [number, freed_as] = freed_.front();
            freed_.pop_front();
            if (!slots_[number].live && slots_[number].freed_as == freed_as) {
                return number;
            }
        }
        return std::nullopt;
    }

    uint32_t capacity_;
    uint32_t live_ = 0;
    uint64_t frees_ = 0;
    std::map<Key, uint32_t> ids_;
    std::deque<Slot> slots_;
    std::deque<std::pair<uint32_t, uint64_t>> freed_;  // oldest first; entries of revived ids are skipped when met
};

struct BackendKey {
    ServiceId service;
    IpAddr address;
    L4Port port = 0;
    auto operator<=>(const BackendKey&) const = default;
};

struct IdMap {
    // Smaller capacities are for tests.
    explicit IdMap(uint32_t services_max = limits::kServicesMax, uint32_t backends_max = limits::kBackendsMax)
        : services(services_max), backends(backends_max) {}
    IdPool<model::ServiceKey, ServiceId> services;
    IdPool<BackendKey, BackendId> backends;
};

}  // namespace penstock::gateway
