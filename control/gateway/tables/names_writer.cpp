// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/names_writer.hpp"

#include <cstdint>
#include <unordered_set>
#include <utility>

namespace penstock::gateway {
namespace {

void keep_first_error(Status& kept, Status&& next) {
    if (kept && !next) {
        kept = std::move(next);
    }
}

}  // namespace

Status NamesWriter::write(const Compiled& compiled, std::span<const model::ServiceKey> changed) {
    Status result;
    for (const model::ServiceKey& key : changed) {
        keep_first_error(result, write_one(key, compiled.services.get(key)));
    }
    return result;
}

Status NamesWriter::write(const Compiled& compiled) {
    Status result;
    for (const auto& [key, programmed] : compiled.services) {
        keep_first_error(result, write_one(key, &programmed));
    }
    return result;
}

Status NamesWriter::write_one(const model::ServiceKey& key, const Programmed* programmed) {
    const auto known = written_.find(key);
    const lb::Service* const before = known == written_.end() ? nullptr : known->second.service.get();
    Status result;
    if (programmed == nullptr) {
        // The name stays: connections of a Service that is gone may go on for a while.
        if (before != nullptr && before->has_affinity()) {
            result = file_.note(before->id, {.key = key, .uid = known->second.uid, .affinity_owner = {}});
            keep_first_error(result, write_endpoints(before, nullptr));
        }
        written_.erase(key);
        return result;
    }
    const lb::Service& now = *programmed->service;
    const InternedText& uid = programmed->desired->uid;
    if (before == &now && known->second.uid == uid) {
        return result;
    }
    if (before == nullptr || before->id != now.id || known->second.uid != uid ||
        before->affinity_owner != now.affinity_owner || before->affinity_epoch != now.affinity_epoch) {
        result = file_.note(now.id, {.key = key,
                                     .uid = uid,
                                     .affinity_owner = now.affinity_owner,
                                     .affinity_epoch = now.affinity_epoch});
    }
    keep_first_error(result, write_endpoints(before, &now));
    written_.insert_or_assign(key, Written{programmed->service, uid});
    return result;
}

// The endpoints of Services with affinity. Null: no Service.
Status NamesWriter::write_endpoints(const lb::Service* before, const lb::Service* now) {
    const bool pins = now != nullptr && now->has_affinity();
    Status result;
    std::unordered_set<uint32_t> offered;
    if (pins) {
        for (const lb::BackendSet& set : now->sets) {
            for (const lb::Backend& backend : set.usable) {
                if (offered.insert(backend.id.value).second) {
                    keep_first_error(result, file_.note(backend.id, {.service = now->id,
                                                                     .endpoint = backend.endpoint,
                                                                     .stay = backend.stay,
                                                                     .port = backend.port,
                                                                     .address = backend.address}));
                }
            }
        }
    }
    if (before != nullptr && before->has_affinity()) {
        for (const lb::BackendSet& set : before->sets) {
            for (const lb::Backend& backend : set.usable) {
                if (!offered.contains(backend.id.value)) {
                    file_.forget(backend.id);
                }
            }
        }
    }
    return result;
}

}  // namespace penstock::gateway
