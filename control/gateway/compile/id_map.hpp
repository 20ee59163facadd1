// SPDX-License-Identifier: Apache-2.0
// Ids of service ports and backends that stay the same across configurations, so that flows, counters and
// scheduler state survive a change. A freed id is reused only when no fresh id is left, the one freed longest
// ago first. Until then, a key that comes back gets its old id, and a listing can still name the backend of a
// draining flow.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "control/base/interned.hpp"
#include "control/model/desired.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::gateway {

// Dense ids below `capacity` for keys of one kind. Not thread-safe.
template <typename Key, typename IdType, typename Hash = std::hash<Key>>
class IdPool {
 public:
    explicit IdPool(uint32_t capacity) : capacity_(capacity) {}

    [[nodiscard]] std::optional<IdType> find(const Key& key) const {
        const auto found = ids_.find(key);
        return found != ids_.end() && slots_[found->second].live ? std::optional(IdType{found->second})
                                                                 : std::nullopt;
    }
    // Number of ids in use.
    [[nodiscard]] uint32_t live() const noexcept { return live_; }
    // Number of keys that can still be added.
    [[nodiscard]] uint32_t room() const noexcept { return capacity_ - live_; }

    // The key's current id, its former id, a fresh id, or the id freed longest ago. Empty if all ids are in
    // use.
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
            ids_.erase(*slots_[number].key);
        } else {
            return std::nullopt;
        }
        slots_[number].key = &ids_.emplace(key, number).first->first;
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
        // An endpoint that repeatedly comes and goes adds an entry each time.
        if (freed_.size() > 2 * slots_.size() + kOutdatedMax) {
            std::erase_if(freed_, [this](const auto& entry) { return !is_current(entry); });
        }
    }

    // The key that the id belongs to or last belonged to. Null for an id never assigned.
    [[nodiscard]] const Key* key_of(IdType id) const noexcept {
        return id.value < slots_.size() ? slots_[id.value].key : nullptr;
    }
    [[nodiscard]] bool is_live(IdType id) const noexcept {
        return id.value < slots_.size() && slots_[id.value].live;
    }
    // Ids assigned so far, live or not, are 0 to size() - 1.
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(slots_.size()); }

 private:
    struct Slot {
        const Key* key = nullptr;  // in ids_
        bool live = false;
        uint64_t freed_as = 0;  // distinguishes this entry in freed_ from earlier ones
    };

    static constexpr size_t kOutdatedMax = 1'024;
    [[nodiscard]] bool is_current(const std::pair<uint32_t, uint64_t>& freed) const {
        return !slots_[freed.first].live && slots_[freed.first].freed_as == freed.second;
    }
    std::optional<uint32_t> oldest_freed() {
        while (!freed_.empty()) {
            const auto entry = freed_.front();
            freed_.pop_front();
            if (is_current(entry)) {
                return entry.first;
            }
        }
        return std::nullopt;
    }

    uint32_t capacity_;
    uint32_t live_ = 0;
    uint64_t frees_ = 0;
    std::unordered_map<Key, uint32_t, Hash> ids_;
    std::deque<Slot> slots_;
    std::deque<std::pair<uint32_t, uint64_t>> freed_;  // oldest first; entries of revived ids are skipped
};

struct BackendKey {
    ServiceId service;
    IpAddr address;
    L4Port port = 0;
    // Uid of the Service object: flows of a deleted object do not belong to a new object of the same name
    // (GEN-010).
    InternedText uid = {};
    bool operator==(const BackendKey&) const = default;
};

// Hashes of data from the control plane, for the control thread: not keyed.
inline constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15ULL;
struct ServiceKeyHash {
    size_t operator()(const model::ServiceKey& key) const noexcept {
        size_t hash = static_cast<size_t>(key.protocol);
        for (const std::string* part : {&key.namespace_name, &key.name, &key.port_name}) {
            hash = hash * kHashFactor ^ std::hash<std::string>{}(*part);
        }
        return hash;
    }
};
struct BackendKeyHash {
    size_t operator()(const BackendKey& key) const noexcept {
        return std::hash<IpAddr>{}(key.address) ^ (size_t{key.service.value} << 16 | key.port) * kHashFactor;
    }
};

struct IdMap {
    // Smaller capacities are for tests.
    explicit IdMap(uint32_t services_max = limits::kServicesMax, uint32_t backends_max = limits::kBackendsMax)
        : services(services_max), backends(backends_max) {}
    IdPool<model::ServiceKey, ServiceId, ServiceKeyHash> services;
    IdPool<BackendKey, BackendId, BackendKeyHash> backends;
};

}  // namespace penstock::gateway
