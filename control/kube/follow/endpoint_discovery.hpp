// SPDX-License-Identifier: Apache-2.0
// Selects which of the collections that may hold endpoints is followed (EP-001): the best one that the server
// serves, never two at once. If a collection answers 404, it is not served, and the next one is tried. While
// a lesser collection is followed, the better ones are retried periodically, because servers are upgraded at
// runtime (APISYNC-001). Objects already read stay until the other collection has been listed.
//
// After the first complete list, a 404 takes effect only if it persists: a proxy or a starting server returns
// 404 too, and a lesser collection holds less data. (Endpoints are cut off at a thousand addresses, and are
// not written for EndpointSlices created by hand.)
//
// The collections themselves are requested rather than the server's /apis: this needs no rights beyond those
// for following them (RBAC-001).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "control/kube/follow/collections.hpp"
#include "control/kube/follow/reflector.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

class EndpointDiscovery final : private ResponseHandler {
 public:
    using Time = Reflector::Time;

    static constexpr std::chrono::minutes kLookAgain{10};
    static constexpr std::chrono::seconds kLookTimeout{30};
    static constexpr std::chrono::seconds kGoneAfter{60};

    // `candidates`: best first, at least one; `reflector` follows the first of them. Both outlive this.
    EndpointDiscovery(std::vector<Collection> candidates, Reflector& reflector, ServerAccess& server);
    ~EndpointDiscovery() override;
    EndpointDiscovery(const EndpointDiscovery&) = delete;
    EndpointDiscovery& operator=(const EndpointDiscovery&) = delete;

    [[nodiscard]] Time next_deadline() const;
    // Call before the reflector's own on_time(), which would otherwise retry a collection that is not served.
    void on_time(Time now);

 private:
    struct Look {
        Transport::RequestId id;
        size_t candidate = 0;
        bool has_ended = false;
        bool is_served = false;
    };

    void on_head(const ResponseHead& head) override { look_->is_served = head.status == 200; }
    void on_body(std::string_view) override {}
    void on_end(const std::optional<TransportError>& error) override;

    [[nodiscard]] bool is_last() const { return followed_ + 1 == candidates_.size(); }
    // Time at which the next candidate is followed instead; max: the followed collection is served, as
    // far as is visible.
    [[nodiscard]] Time give_up_at() const;
    void follow(size_t candidate, Time now);
    void look_at(size_t candidate);
    void stop_looking();

    std::vector<Collection> candidates_;
    Reflector& reflector_;
    ServerAccess& server_;
    size_t followed_ = 0;
    std::optional<Time> not_served_since_;
    std::optional<Look> look_;
    Time look_again_ = Time::max();  // max: the best collection is followed
};

}  // namespace penstock::kube
