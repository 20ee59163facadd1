// SPDX-License-Identifier: Apache-2.0
// What a reflector reports: log lines about its collection, and its status.
#include <chrono>
#include <string>
#include <vector>

#include "control/kube/follow/reflector.hpp"

namespace penstock::kube {

std::string Reflector::described(const std::string& what) const {
    return collection_.path + ": " + what;
}

void Reflector::log_unnamed(const std::vector<std::string>& faults) {
    errors_["decode"] += faults.size();
    for (const std::string& fault : faults) {
        server_.log.warn(described(fault));
    }
}

// A forbidden first list blocks the start, or the allocation of addresses. The 403 alone looks like a mere
// restriction, so the consequence is added. A 404 for AddressPools means that their CRD is missing.
std::string Reflector::consequence_of(const Trouble& trouble) const {
    const bool is_pool = collection_.kind == ObjectKind::AddressPool;
    if (trouble.kind == Trouble::Kind::NotServed && is_pool) {
        return table_.is_listed() ? "; the pools that were read before stay in use"
                                  : "; no address pool is known until the CRD is installed "
                                    "(docs/deploy/common/addresspool-crd.yaml)";
    }
    if (trouble.kind != Trouble::Kind::Forbidden || table_.is_listed()) {
        return "";
    }
    return std::string(is_pool ? "; no address pool is known"
                       : collection_.kind == ObjectKind::Namespace
                           ? "; no namespaceSelector of an address pool matches"
                           : "; nothing is sent to gateways") +
           " until " + std::string(resource_name(collection_.kind)) +
           " can be listed and watched: grant these rights (docs/deploy/common/rbac.yaml)" +
           (collection_.kind == ObjectKind::Node ? ", or follow one namespace without Nodes (--namespace)"
                                                 : "");
}

// Logs a trouble once, however long it lasts.
void Reflector::report(const Trouble& trouble) {
    if (!lasting_ || lasting_->name != trouble.name) {
        // Compaction of histories, and endpoints that move elsewhere, are everyday events.
        const bool usual =
            trouble.kind == Trouble::Kind::Expired ||
            (trouble.kind == Trouble::Kind::NotServed && collection_.kind != ObjectKind::AddressPool);
        const std::string text = described(trouble.what) + consequence_of(trouble);
        usual ? server_.log.info(text) : server_.log.warn(text);
    }
    lasting_ = trouble;
}

void Reflector::report_well() {
    if (lasting_) {
        server_.log.info(described("is followed again"));
        lasting_.reset();
    }
}

CollectionStatus Reflector::status(Time now) const {
    using State = CollectionStatus::State;
    const auto since = [now](Time then) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(now - then);
    };
    const bool watching =
        exchange_ && exchange_->doing == Doing::Watching && exchange_->head && exchange_->head->status == kOk;
    const bool listing =
        exchange_ && (exchange_->doing == Doing::Listing || exchange_->doing == Doing::Streaming);
    CollectionStatus status;
    status.kind = resource_name(collection_.kind);
    status.path = collection_.path;
    status.state = watching   ? State::Watching
                   : listing  ? State::Listing
                   : lasting_ ? State::BackingOff
                              : State::Waiting;
    status.listed = table_.is_listed();
    status.optional = is_optional(collection_.kind);
    status.objects = table_.size();
    status.quarantined = table_.quarantined();
    status.resource_version = version_;
    if (heard_at_) {
        status.last_event_age = since(*heard_at_);
    }
    if (table_.is_listed()) {
        status.stale_age = watching || !lost_at_ ? std::chrono::milliseconds{0} : since(*lost_at_);
    }
    status.last_error = lasting_ ? lasting_->what : "";
    status.watch_restarts = watches_ > 0 ? watches_ - 1 : 0;
    status.relists = lists_ > 0 ? lists_ - 1 : 0;
    status.errors = errors_;
    return status;
}

}  // namespace penstock::kube
