// SPDX-License-Identifier: Apache-2.0
// Decides which connections an HTTP server keeps. Idle clients must not block a probe, so a full pool evicts
// its oldest silent connection instead of refusing the new one. Pure: no socket, no clock; connections are
// numbers.
//
// A connection is *silent* until its whole request has arrived, and again after its response has been sent.
// Connections from loopback, where the kubelet's probes come from, have a separate pool. Otherwise clients
// from outside could take every slot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "dataplane/base/ip.hpp"

namespace penstock::http {

// In the order of arrival.
using ConnectionId = uint64_t;

struct AdmissionLimits {
    uint32_t remote_max = 224;
    uint32_t local_max = 32;  // from 127.0.0.0/8 and ::1
    uint32_t per_source_max = 32;
};

class Admission {
 public:
    explicit Admission(AdmissionLimits limits) : limits_(limits) {}

    // Admits `id`, which is higher than every earlier one. Returns the connection that the caller must close
    // for it, if any: the source's oldest if the source is at its limit, otherwise the pool's oldest if the
    // pool is full. Silent connections are evicted first. `id` itself is never returned, and the returned
    // connection is already removed.
    std::optional<ConnectionId> admit(ConnectionId id, const IpAddr& source);
    void set_silent(ConnectionId id, bool is_silent);
    // No effect for an evicted connection.
    void remove(ConnectionId id);

    [[nodiscard]] size_t size() const noexcept { return connections_.size(); }

 private:
    // The oldest first.
    struct Group {
        std::set<ConnectionId> silent;
        std::set<ConnectionId> answering;
        [[nodiscard]] size_t size() const noexcept { return silent.size() + answering.size(); }
        [[nodiscard]] ConnectionId victim() const {
            return silent.empty() ? *answering.begin() : *silent.begin();
        }
    };
    struct Connection {
        Prefix source;
        bool is_local = false;
        bool is_silent = true;
    };
    void insert(ConnectionId id, const Connection& connection);
    void erase(ConnectionId id, const Connection& connection);
    Group& pool(const Connection& connection) { return connection.is_local ? local_ : remote_; }

    const AdmissionLimits limits_;
    std::map<ConnectionId, Connection> connections_;
    std::map<Prefix, Group> by_source_;
    Group local_;
    Group remote_;
};

}  // namespace penstock::http
